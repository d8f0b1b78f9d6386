use std::collections::HashMap;
use std::process::{self, Command};

use testcontainers::bollard::models::PortBinding;
use testcontainers::core::{IntoContainerPort, Mount};
use testcontainers::runners::AsyncRunner;
use testcontainers::{ContainerAsync, ContainerRequest, GenericImage, ImageExt, TestcontainersError};

use super::instance::Instance;
use super::programs::output;
use super::watchdog::Watchdog;
use super::{ServerError, Settings, blocking, image};

/// The container ends by itself after so many seconds, should its owner and its watchdog both be unable to end it.
const TIME_LIMIT: u32 = 2 * 60 * 60;

/// Names the process that a container belongs to.
const OWNER_LABEL: &str = "lease.owner";

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
    /// Finds an image and describes the container; does not start it.
    pub(super) fn create(settings: &Settings, password: &str, port: u16) -> Result<Self, ServerError> {
        let (image, tag) = image::find(settings.version.as_deref())?;
        // Given as arguments, so that they hold from the first start on, for any image.
        let arguments = settings
            .list(true)
            .into_iter()
            .flat_map(|(setting, value)| ["-c".into(), format!("{setting}={value}")]);
        let limit = TIME_LIMIT.to_string();
        let command = [limit.as_str(), "docker-entrypoint.sh", "postgres"].map(str::to_owned);

        let bindings = move || {
            let binding = PortBinding {
                host_ip: Some("127.0.0.1".into()),
                host_port: Some(port.to_string()),
            };
            HashMap::from([("5432/tcp".to_owned(), Some(vec![binding]))])
        };
        let request = GenericImage::new(image, &tag)
            .with_entrypoint("timeout")
            .with_cmd(command.into_iter().chain(arguments))
            .with_env_var("POSTGRES_PASSWORD", password)
            // Not SCRAM, for the reason that local servers have.
            .with_env_var("POSTGRES_HOST_AUTH_METHOD", "password")
            // A port of our choice, for one that the engine chooses is another one after each start.
            .with_mapped_port(port, 5432.tcp())
            .with_host_config_modifier(move |host| {
                host.port_bindings = Some(bindings());
                // As the first process, `timeout` of coreutils 9.10 ends at once.
                host.init = Some(true);
            });
        let request = match &settings.sockets {
            Some(folder) => {
                let folder = folder.to_string_lossy();
                request.with_mount(Mount::bind_mount(folder.clone(), folder))
            }
            None => request,
        };
        Ok(Self::of("postgres", request))
    }

    /// Describes a container with PgBouncer in it; does not start it.
    pub(super) fn pooler(config: String) -> Result<Self, ServerError> {
        let (image, tag) = image::pooler()?;
        let file = "/etc/lease-pgbouncer.ini";
        let limit = TIME_LIMIT.to_string();
        let request = GenericImage::new(image, tag)
            .with_entrypoint("timeout")
            .with_cmd([limit.as_str(), "pgbouncer", file])
            .with_copy_to(file, config.into_bytes())
            // It has to reach a server that listens on this machine's loopback address alone.
            .with_network("host");
        Ok(Self::of("pgbouncer", request))
    }

    fn of(program: &str, request: ContainerRequest<GenericImage>) -> Self {
        let name = format!("lease-test-{program}-{:016x}", rand::random::<u64>());
        let request = request
            .with_container_name(&name)
            .with_label(OWNER_LABEL, process::id().to_string());
        Self {
            name,
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
        let log = self.docker(
            "read the log of a container",
            &["container", "logs", "--tail", "40", &self.name],
        );
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

fn refused(step: &'static str, error: &TestcontainersError) -> ServerError {
    ServerError::Docker {
        step,
        reason: error.to_string(),
    }
}
