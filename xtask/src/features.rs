//! The crates of this workspace, and that each feature of each compiles alone.

use anyhow::Context;
use serde::Deserialize;

use crate::run::{self, cargo};

/// A crate, as cargo tells of it.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) name: String,
    features: std::collections::BTreeMap<String, Vec<String>>,
    /// Where it may be published: nowhere if empty, anywhere if not there.
    publish: Option<Vec<String>>,
}

impl Package {
    /// Whether it is for others to use.
    pub(crate) fn is_published(&self) -> bool {
        self.publish.as_ref().is_none_or(|places| !places.is_empty())
    }

    /// No feature, and then each alone. Nothing for a crate without any: the other checks have compiled it.
    fn alone(&self) -> Vec<&str> {
        let features = self
            .features
            .keys()
            .map(String::as_str)
            .filter(|name| *name != "default");
        let features: Vec<&str> = features.collect();
        if features.is_empty() {
            features
        } else {
            [&[""][..], &features].concat()
        }
    }
}

/// All crates of the workspace.
pub(crate) fn packages() -> anyhow::Result<Vec<Package>> {
    #[derive(Deserialize)]
    struct Metadata {
        packages: Vec<Package>,
    }
    let told = run::output(&mut cargo(["metadata", "--no-deps", "--format-version", "1"]))?;
    let metadata: Metadata = serde_json::from_slice(&told).context("what cargo says of the workspace")?;
    Ok(metadata.packages)
}

/// Whether every crate compiles without a warning with no feature, and with each of its features and no other.
pub(crate) fn each_alone() -> anyhow::Result<bool> {
    let mut ok = true;
    for package in packages()? {
        for feature in package.alone() {
            let lib = ["clippy", "--package", &package.name, "--lib", "--no-default-features"];
            let mut command = cargo(lib);
            if !feature.is_empty() {
                command.args(["--features", feature]);
            }
            ok &= run::succeeds(command.args(["--", "-D", "warnings"]))?;
        }
    }
    Ok(ok)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_feature_is_tried_alone_and_none_is() {
        let packages = packages().unwrap();
        let of = |name: &str| packages.iter().find(|package| package.name == name).unwrap();
        assert_eq!(of("lease-core").alone(), ["", "metrics", "mutants", "tokio"]);
        assert!(of("lease-sqlite").alone().is_empty());
        assert!(of("lease-core").is_published() && !of("xtask").is_published());
    }
}
