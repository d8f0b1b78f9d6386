//! Tenures: from the first poll of f to the last.

use std::collections::HashMap;

use crate::line::{Did, Line};

/// One tenure's work.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Span {
    pub(super) name: String,
    pub(super) token: i64,
    pub(super) pod: usize,
    pub(super) enter: u64,
    /// Its last poll; for a process that was killed inside, its death.
    pub(super) leave: u64,
}

impl Span {
    pub(super) fn who(&self) -> String {
        format!("pod-{}", self.pod + 1)
    }
}

/// Pairs what began with its end.
pub(super) fn spans(pods: &[Vec<Line>], deaths: &HashMap<u32, u64>) -> Vec<Span> {
    let mut all: Vec<Span> = Vec::new();
    for (pod, lines) in pods.iter().enumerate() {
        let mut open: HashMap<(u32, &str, i64), usize> = HashMap::new();
        for line in lines {
            let key = (line.pid, line.name.as_str(), line.token);
            match line.did {
                Did::Enter { at } => {
                    open.insert(key, all.len());
                    all.push(Span {
                        name: line.name.clone(),
                        token: line.token,
                        pod,
                        enter: at,
                        // Without a line that says otherwise: a process that nobody killed is still inside.
                        leave: deaths.get(&line.pid).copied().unwrap_or(u64::MAX),
                    });
                }
                Did::Leave { at } => {
                    if let Some(index) = open.remove(&key) {
                        all[index].leave = at;
                    }
                }
                Did::Write { .. } => {}
            }
        }
    }
    all
}
