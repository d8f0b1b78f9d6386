//! The manifests, the alerts and the dashboard: that they can be read, and speak of what there is.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

const SERVICE: &str = include_str!("../src/bin/service.rs");
const DOCS: &str = include_str!("../../docs/operating.md");

fn yaml(text: &str) -> Vec<Value> {
    serde_saphyr::from_multiple(text).expect("YAML")
}

#[test]
fn the_deployment_is_what_the_docs_promise() {
    let documents = yaml(include_str!("../k8s/service.yaml"));
    let deployment = documents
        .iter()
        .find(|document| document["kind"] == "Deployment")
        .unwrap();
    assert_eq!(deployment["spec"]["replicas"], 3);
    let pod = &deployment["spec"]["template"]["spec"];
    let container = &pod["containers"][0];
    let path = |probe: &str| container[probe]["httpGet"]["path"].as_str().unwrap().to_owned();
    // Which of the two hangs on the lease is tested where the endpoints are.
    assert_eq!(
        (path("livenessProbe"), path("readinessProbe")),
        ("/healthz".into(), "/readyz".into())
    );
    assert!(SERVICE.contains("\"/healthz\"") && SERVICE.contains("\"/readyz\""));
    assert_eq!(
        container["livenessProbe"]["httpGet"]["port"],
        container["ports"][0]["name"]
    );
    assert!(
        container["resources"]["limits"]["cpu"].is_null(),
        "a limit of CPU pauses"
    );
    assert_eq!(container["command"].as_array().unwrap().len(), 1, "no shell");
    assert_eq!(container["env"][0]["name"], "LEASE_URL");
    assert!(
        container["env"][0]["valueFrom"]["secretKeyRef"].is_object(),
        "no password in a manifest"
    );

    // The releases take at most a little over five seconds after the grace.
    let grace = SERVICE
        .split_once("const GRACE: Duration = Duration::from_secs(")
        .unwrap()
        .1;
    let grace: u64 = grace.split_once(')').unwrap().0.parse().unwrap();
    assert!(pod["terminationGracePeriodSeconds"].as_u64().unwrap() > grace + 6);
    let service = documents.iter().find(|document| document["kind"] == "Service").unwrap();
    assert_eq!(
        service["spec"]["selector"],
        deployment["spec"]["selector"]["matchLabels"]
    );
}

#[test]
fn the_table_is_made_by_a_job_of_its_owner() {
    let documents = yaml(include_str!("../k8s/migrate.yaml"));
    let container = &documents[0]["spec"]["template"]["spec"]["containers"][0];
    assert_eq!(container["command"], serde_json::json!(["lease", "migrate"]));
    let (owner, pods) = (&container["env"][0], &yaml(include_str!("../k8s/service.yaml"))[0]);
    let pods = &pods["spec"]["template"]["spec"]["containers"][0]["env"][0];
    assert_ne!(owner["valueFrom"], pods["valueFrom"], "pods do not own the table");
}

#[test]
fn each_alert_asks_for_metrics_that_there_are_and_has_its_line_in_the_docs() {
    let documents = yaml(include_str!("../../docs/alerts.yaml"));
    let rules = documents[0]["groups"][0]["rules"].as_array().unwrap();
    let mut names = BTreeSet::new();
    for rule in rules {
        names.insert(rule["alert"].as_str().unwrap());
        is_known(rule["expr"].as_str().unwrap());
        assert!(rule["annotations"]["summary"].is_string(), "{rule}");
    }
    let table = DOCS.split_once("| alert | when | look at |").unwrap().1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let listed: BTreeSet<&str> = rows.map(|row| row.split('`').nth(1).unwrap()).collect();
    assert_eq!(names, listed);
}

#[test]
fn each_panel_asks_for_metrics_that_there_are_and_each_metric_has_a_panel() {
    let dashboard: Value = serde_json::from_str(include_str!("../../docs/grafana.json")).unwrap();
    let panels = dashboard["panels"].as_array().unwrap();
    let mut ids = BTreeSet::new();
    let mut asked = BTreeSet::new();
    for panel in panels {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        for target in panel["targets"].as_array().unwrap() {
            asked.extend(is_known(target["expr"].as_str().unwrap()));
        }
    }
    let known: BTreeSet<String> = metrics().into_keys().collect();
    assert_eq!(asked, known);
}

/// The metrics of the docs, each with the words that its label may be. A test of lease-core compares them with the code.
fn metrics() -> BTreeMap<String, Vec<&'static str>> {
    let table = DOCS
        .split_once("| metric | kind | labels | what it counts |")
        .unwrap()
        .1;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let in_code = |cell: &'static str| cell.split('`').skip(1).step_by(2).collect::<Vec<_>>();
    let metric = |row: &'static str| {
        let cells: Vec<&str> = row.split('|').collect();
        (in_code(cells[1])[0].to_owned(), in_code(cells[3]))
    };
    rows.map(metric).collect()
}

/// The metrics that a query names. Each is one of ours, with labels and words that it has.
#[track_caller]
fn is_known(query: &str) -> BTreeSet<String> {
    let metrics = metrics();
    let is_word = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let mut named = BTreeSet::new();
    for (at, _) in query.match_indices("lease_") {
        let rest = &query[at..];
        let name = &rest[..rest.find(|letter| !is_word(letter)).unwrap_or(rest.len())];
        let name = ["_bucket", "_sum", "_count"]
            .iter()
            .find_map(|end| name.strip_suffix(end))
            .unwrap_or(name);
        let labels = metrics.get(name).unwrap_or_else(|| panic!("no metric {name}: {query}"));
        named.insert(name.to_owned());
        let selector = rest.split_once('{').filter(|(before, _)| before.chars().all(is_word));
        let Some((selector, _)) = selector.and_then(|(_, rest)| rest.split_once('}')) else {
            continue;
        };
        for matcher in selector.split(',') {
            let (label, value) = matcher.split_once('=').unwrap();
            let label = label.trim_end_matches('!');
            let words = value.trim_matches(['=', '~', '"']);
            if label != "lease" {
                assert_eq!(labels.first(), Some(&label), "{query}");
                assert!(words.split('|').all(|word| labels[1..].contains(&word)), "{query}");
            }
        }
    }
    assert!(!named.is_empty(), "{query}");
    named
}
