use super::instance::Instance;
use super::{ServerError, Settings};

#[derive(Debug)]
pub(super) struct Container;

impl Container {
    pub(super) fn create(_settings: &Settings, _password: &str, _port: u16) -> Result<Self, ServerError> {
        Err(ServerError::Missing {
            looked_for: "a container".into(),
        })
    }
}
impl Instance for Container {
    fn start(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
    fn stop(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
    fn kill(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
    fn pause(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
    fn resume(&mut self) -> Result<(), ServerError> {
        Ok(())
    }
    fn freeze_backend(&mut self, _: i32, _: bool) -> Result<(), ServerError> {
        Ok(())
    }
    fn ended(&mut self) -> Option<String> {
        None
    }
    fn log(&self) -> String {
        String::new()
    }
}
