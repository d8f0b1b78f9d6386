//! Several hosts in one URL, each tried with a time limit of its own.
//!
//! The driver goes to the next host when one refuses, but it has no limit for a host that takes the connection and then
//! says nothing, as a primary does that was frozen before its standby was promoted.

use tokio_postgres::Config;
use tokio_postgres::config::{Host, LoadBalanceHosts};

/// One configuration for each host, in the order in which to try them. What the driver would refuse stays whole.
pub(super) fn each(config: &Config) -> Vec<Config> {
    let (names, addresses, ports) = (config.get_hosts(), config.get_hostaddrs(), config.get_ports());
    let count = names.len().max(addresses.len());
    let fits = |len: usize| len == 0 || len == count;
    if count < 2 || !fits(names.len()) || !fits(addresses.len()) || !(ports.len() == 1 || fits(ports.len())) {
        return vec![config.clone()];
    }
    let mut hosts: Vec<Config> = (0..count)
        .map(|at| {
            let mut alone = without_hosts(config);
            match names.get(at) {
                Some(Host::Tcp(name)) => drop(alone.host(name)),
                #[cfg(unix)]
                Some(Host::Unix(path)) => drop(alone.host_path(path)),
                None => {}
            }
            if let Some(address) = addresses.get(at) {
                alone.hostaddr(*address);
            }
            if let Some(port) = ports.get(at).or(ports.first()) {
                alone.port(*port);
            }
            alone
        })
        .collect();
    if config.get_load_balance_hosts() == LoadBalanceHosts::Random {
        fastrand::shuffle(&mut hosts);
    }
    hosts
}

/// The address of a configuration of one host, for a person.
pub(super) fn shown(config: &Config) -> String {
    let port = config.get_ports().first().copied().unwrap_or(5_432);
    let address = config.get_hostaddrs().first().map(ToString::to_string);
    let host = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.clone(),
        #[cfg(unix)]
        Some(Host::Unix(path)) => return format!("{}/.s.PGSQL.{port}", path.display()),
        None => address.unwrap_or_default(),
    };
    if host.contains(':') {
        format!("[{host}]:{port}")
    } else {
        format!("{host}:{port}")
    }
}

/// Whether a configuration of one host leads to this machine: by a socket, or by the loopback.
pub(super) fn is_near(config: &Config) -> bool {
    let name = match config.get_hosts().first() {
        Some(Host::Tcp(name)) => name.as_str(),
        #[cfg(unix)]
        Some(Host::Unix(_)) => return true,
        None => "",
    };
    let address = config.get_hostaddrs().first().copied().or_else(|| name.parse().ok());
    match address {
        Some(address) => address.is_loopback(),
        None => name == "localhost",
    }
}

fn without_hosts(config: &Config) -> Config {
    let mut copy = Config::new();
    if let Some(user) = config.get_user() {
        copy.user(user);
    }
    if let Some(password) = config.get_password() {
        copy.password(password);
    }
    if let Some(database) = config.get_dbname() {
        copy.dbname(database);
    }
    if let Some(options) = config.get_options() {
        copy.options(options);
    }
    if let Some(name) = config.get_application_name() {
        copy.application_name(name);
    }
    if let Some(limit) = config.get_connect_timeout() {
        copy.connect_timeout(*limit);
    }
    if let Some(limit) = config.get_tcp_user_timeout() {
        copy.tcp_user_timeout(*limit);
    }
    copy.keepalives(config.get_keepalives())
        .keepalives_idle(config.get_keepalives_idle());
    if let Some(interval) = config.get_keepalives_interval() {
        copy.keepalives_interval(interval);
    }
    if let Some(retries) = config.get_keepalives_retries() {
        copy.keepalives_retries(retries);
    }
    copy.ssl_mode(config.get_ssl_mode())
        .ssl_negotiation(config.get_ssl_negotiation())
        .target_session_attrs(config.get_target_session_attrs())
        .channel_binding(config.get_channel_binding())
        .load_balance_hosts(config.get_load_balance_hosts());
    copy
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_host_keeps_everything_else() {
        let text = "user=u password=p dbname=d options='-c x=1' application_name=a sslmode=require connect_timeout=3 \
                    tcp_user_timeout=4 keepalives=0 keepalives_idle=5 keepalives_interval=6 keepalives_retries=7 \
                    target_session_attrs=read-write channel_binding=require";
        let both: Config = format!("host=h1,/sockets port=1,2 {text}").parse().unwrap();
        let (one, two): (Config, Config) = (
            format!("host=h1 port=1 {text}").parse().unwrap(),
            format!("host=/sockets port=2 {text}").parse().unwrap(),
        );
        assert_eq!(each(&both), [one, two]);
        let addresses: Config = "hostaddr=127.0.0.1,127.0.0.2 port=9".parse().unwrap();
        assert_eq!(
            each(&addresses),
            ["hostaddr=127.0.0.1 port=9", "hostaddr=127.0.0.2 port=9"].map(|text| text.parse::<Config>().unwrap())
        );
    }

    #[test]
    fn an_address_is_shown_as_a_person_would_write_it() {
        for (text, shown_as) in [
            ("host=db.internal", "db.internal:5432"),
            ("host=db.internal hostaddr=127.0.0.1 port=6432", "db.internal:6432"),
            ("hostaddr=::1", "[::1]:5432"),
            ("host=/sockets port=5433", "/sockets/.s.PGSQL.5433"),
        ] {
            assert_eq!(shown(&text.parse().unwrap()), shown_as);
        }
    }

    #[test]
    fn the_loopback_and_sockets_are_near() {
        for (text, near) in [
            ("host=localhost", true),
            ("host=127.8.0.1", true),
            ("host=::1", true),
            ("host=/sockets", true),
            ("host=db hostaddr=127.0.0.1", true),
            ("hostaddr=127.0.0.1", true),
            ("host=localhost hostaddr=192.0.2.1", false),
            ("host=db", false),
            ("host=192.0.2.1", false),
        ] {
            assert_eq!(is_near(&text.parse().unwrap()), near, "{text}");
        }
    }

    #[test]
    fn what_does_not_fit_together_is_left_to_the_driver() {
        for text in ["host=a,b port=1,2,3", "host=a,b hostaddr=127.0.0.1", "host=a", "user=u"] {
            let config: Config = text.parse().unwrap();
            assert_eq!(each(&config), [config], "{text}");
        }
    }
}
