//! The rule files that are there to be copied.

use crate::{schema::repository, yaml::json};
use std::fs;
use tollgate_rules::{json_schema, read_rules};

#[test]
fn every_example_is_good() {
    let schema = serde_json::from_str(&json_schema()).unwrap();
    let validator = jsonschema::draft202012::new(&schema).unwrap();
    let mut names = Vec::new();
    for entry in fs::read_dir(repository("examples/rules")).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(&path).unwrap();
        let environment =
            |name: &str| ["REDIS_PASSWORD", "ENVOY_TOKEN"].contains(&name).then(|| "secret".to_owned());
        let file = read_rules(&name, &text, environment).unwrap_or_else(|bad| panic!("{bad}"));
        assert_eq!(file.warnings(), [], "{name}");
        let errors: Vec<_> = validator.iter_errors(&json(&text)).map(|error| error.to_string()).collect();
        assert_eq!(errors, [""; 0], "{name}");
        names.push(name);
    }
    names.sort();
    assert_eq!(names, ["api-keys.yaml", "basic.yaml", "nginx-like.yaml", "redis.yaml"]);
}
