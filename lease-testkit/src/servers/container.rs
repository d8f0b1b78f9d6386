use std::collections::HashMap;
use std::iter;
use std::process::{self, Command};

use testcontainers::bollard::models::PortBinding;
use testcontainers::core::{IntoContainerPort, Mount};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt, TestcontainersError};

use super::command::output;
use super::instance::Instance;
use super::watchdog::Watchdog;
use super::{ServerError, Settings, blocking};

/// The container ends by itself after so many seconds, should its owner and its watchdog both be unable to end it.
const TIME_LIMIT: u32 = 2 * 60 * 60;

/// Names the process that a container or network belongs to.
pub(super) const OWNER_LABEL: &str = "lease.owner";

/// How long an orderly end may take, in seconds.
const STOP_LIMIT: i32 = 60;

/// A private server in a container, on a port of this machine's loopback address.
#[derive(Debug)]
pub(super) struct Container {
    name: String,
    request: Option<ContainerRequest<GenericImage>>,
    container: Option<ContainerAsync<GenericImage>>,
    watchdog: Option<Watchdog>,
}

impl Container {
    /// A container that is not started yet, with a name of its own after the program's.
    pub(super) fn of(program: &str, request: ContainerRequest<GenericImage>) -> Self {
        Self::named(&random_name(program), request)
    }

    /// As [`of`](Self::of), with this name.
    pub(super) fn named(name: &str, request: ContainerRequest<GenericImage>) -> Self {
        let request = request
            .with_container_name(name)
            .with_label(OWNER_LABEL, process::id().to_string());
        Self {
            name: name.to_owned(),
            request: Some(request),
            container: None,
            watchdog: None,
        }
    }

    fn docker(&self, step: &'static str, arguments: &[&str]) -> Result<String, ServerError> {
        let mut command = Command::new("docker");
        command.args(arguments);
        output(command, step)
    }

    /// Runs one call of the engine's interface to its end, on the runtime that the container belongs to.
    fn call<T: Send + 'static, F>(
        &mut self,
        step: &'static str,
        call: impl FnOnce(ContainerAsync<GenericImage>) -> F,
    ) -> Result<T, ServerError>
    where
        F: Future<Output = (ContainerAsync<GenericImage>, Result<T, TestcontainersError>)> + Send + 'static,
    {
        let container = self.container.take().ok_or(ServerError::Docker {
            step,
            reason: "it was not started".into(),
        })?;
        let (container, result) = blocking::run(call(container));
        self.container = Some(container);
        result.map_err(|error| refused(step, &error))
    }
}

impl Instance for Container {
    fn start(&mut self) -> Result<(), ServerError> {
        let step = "start a container";
        let Some(request) = self.request.take() else {
            return self.call(step, async |container| {
                let result = container.start().await;
                (container, result)
            });
        };
        self.watchdog = Some(Watchdog::start(include_str!("cleanup_container.sh"), &self.name)?);
        let started = blocking::run(request.start());
        self.container = Some(started.map_err(|error| refused(step, &error))?);
        Ok(())
    }

    fn follow(&mut self, _url: &str) -> Result<(), ServerError> {
        Err(ServerError::Docker {
            step: "make a standby",
            reason: "only a server from this machine's programs can follow another: `Source::Local`".into(),
        })
    }

    fn stop(&mut self) -> Result<(), ServerError> {
        self.call("stop a container", async |container| {
            let result = container.stop_with_timeout(Some(STOP_LIMIT)).await;
            (container, result)
        })
    }

    fn kill(&mut self) -> Result<(), ServerError> {
        self.docker("kill a container", &["container", "kill", &self.name])
            .map(drop)
    }

    fn pause(&mut self) -> Result<(), ServerError> {
        self.call("pause a container", async |container| {
            let result = container.pause().await;
            (container, result)
        })
    }

    fn resume(&mut self) -> Result<(), ServerError> {
        self.call("resume a container", async |container| {
            let result = container.unpause().await;
            (container, result)
        })
    }

    fn freeze_backend(&mut self, pid: i32, frozen: bool) -> Result<(), ServerError> {
        let signal = if frozen { "STOP" } else { "CONT" };
        let kill = format!("kill -{signal} {pid}");
        let arguments = ["container", "exec", &self.name, "sh", "-c", &kill];
        self.docker("signal a session in a container", &arguments).map(drop)
    }

    fn ended(&mut self) -> Option<String> {
        let exit = self.call("watch a container", async |container| {
            let result = container.exit_code().await;
            (container, result)
        });
        Some(format!("exit code {}", exit.ok()??))
    }

    fn log(&self) -> String {
        // What a server writes to its standard error is on that of this command, too.
        let mut command = Command::new("sh");
        command.args(["-c", "docker container logs --tail 40 \"$1\" 2>&1", "sh", &self.name]);
        let log = output(command, "read the log of a container");
        log.unwrap_or_else(|error| error.to_string())
    }
}

impl Drop for Container {
    fn drop(&mut self) {
        let Some(container) = self.container.take() else { return };
        let removed = blocking::run(container.rm());
        // What is certainly gone needs no second look, which takes a while.
        if let (Ok(()), Some(watchdog)) = (removed, self.watchdog.take()) {
            watchdog.dismiss();
        }
    }
}

/// A name that no other container or network of the engine has.
pub(super) fn random_name(program: &str) -> String {
    format!("lease-test-{program}-{:016x}", rand::random::<u64>())
}

/// A container of this image that runs `command`, but not for ever.
pub(super) fn request(
    (image, tag): (&str, impl AsRef<str>),
    command: impl IntoIterator<Item = String>,
) -> ContainerRequest<GenericImage> {
    let command = iter::once(TIME_LIMIT.to_string()).chain(command);
    GenericImage::new(image, tag.as_ref())
        .with_entrypoint("timeout")
        .with_cmd(command)
        // As the first process, `timeout` of coreutils 9.10 ends at once.
        .with_host_config_modifier(|host| host.init = Some(true))
}

/// As [`request`], for a server that is to be reached on `port` of 127.0.0.1, and inside listens on `inner`.
pub(super) fn server(
    image: (&str, impl AsRef<str>),
    command: impl IntoIterator<Item = String>,
    settings: &Settings,
    port: u16,
    inner: u16,
) -> ContainerRequest<GenericImage> {
    let bindings = move || {
        let binding = PortBinding {
            host_ip: Some("127.0.0.1".into()),
            host_port: Some(port.to_string()),
        };
        HashMap::from([(format!("{inner}/tcp"), Some(vec![binding]))])
    };
    let request = request(image, command)
        // A port of our choice, for one that the engine chooses is another one after each start.
        .with_mapped_port(port, inner.tcp())
        .with_host_config_modifier(move |host| {
            host.port_bindings = Some(bindings());
            host.init = Some(true);
            // A node of a cluster that was cut off tries at once to reach the others again, not after its longest wait.
            host.sysctls = Some(HashMap::from([("net.ipv4.tcp_syn_retries".into(), "1".into())]));
        });
    with_places(request, settings)
}

/// As [`request`], for a server that is measured: it listens on the machine's own addresses, and its data are in a volume.
///
/// Otherwise each packet would go through the engine's proxy and each write through what the engine makes of an image's layers,
/// which are processes on some machines. The volume is removed with the container.
pub(super) fn measured(
    image: (&str, impl AsRef<str>),
    command: impl IntoIterator<Item = String>,
    settings: &Settings,
    data: &str,
) -> ContainerRequest<GenericImage> {
    let request = request(image, command)
        .with_network("host")
        // Without a name, so that no other container has it.
        .with_mount(Mount::volume_mount("", data));
    with_places(request, settings)
}

fn with_places(mut request: ContainerRequest<GenericImage>, settings: &Settings) -> ContainerRequest<GenericImage> {
    for ((_, path), (_, text)) in files(settings).zip(&settings.files) {
        request = request.with_copy_to(path, text.clone());
    }
    match &settings.sockets {
        Some(folder) => {
            let folder = folder.to_string_lossy();
            request.with_mount(Mount::bind_mount(folder.clone(), folder))
        }
        None => request,
    }
}

/// The settings that are files, each with the path that its file has in a container.
pub(super) fn files(settings: &Settings) -> impl Iterator<Item = (String, String)> {
    let path = |setting: &str| format!("/etc/lease-test/{setting}");
    settings
        .files
        .iter()
        .map(move |(setting, _)| (setting.clone(), path(setting)))
}

fn refused(step: &'static str, error: &TestcontainersError) -> ServerError {
    ServerError::Docker {
        step,
        reason: error.to_string(),
    }
}
