//! What this server tells of itself: `COMMAND` and `INFO`.

use super::{
    command::{COMMANDS, Spec, find},
    parse::Request,
    reply::{Reply, echoed},
    session::Session,
};

/// The Redis that clients are to take this for: none of the commands here has changed since.
const REDIS_VERSION: &str = "7.0.0";

/// `COMMAND [COUNT | LIST | DOCS [name ...] | INFO [name ...]]`
pub(super) fn commands(request: &Request<'_>, reply: &mut Reply<'_>) {
    let word = request.get(1).to_ascii_uppercase();
    match &word[..] {
        b"" if request.len() == 1 => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| inform(spec, reply));
        }
        b"COUNT" => reply.integer(COMMANDS.len() as i64),
        b"LIST" => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| reply.bulk(spec.name.to_ascii_lowercase().as_bytes()));
        }
        b"INFO" if request.len() == 2 => {
            reply.array(COMMANDS.len());
            COMMANDS.iter().for_each(|spec| inform(spec, reply));
        }
        b"INFO" => {
            reply.array(request.len() - 2);
            for name in request.from(2) {
                match find(name) {
                    Some(spec) => inform(spec, reply),
                    None => reply.null(),
                }
            }
        }
        b"DOCS" => {
            let named: Vec<&Spec> = match request.len() {
                2 => COMMANDS.iter().collect(),
                _ => request.from(2).filter_map(find).collect(),
            };
            reply.map(named.len());
            named.into_iter().for_each(|spec| document(spec, reply));
        }
        _ => {
            let word = echoed(request.get(1));
            reply.error(&format!(
                "ERR unknown subcommand '{word}'. There are COMMAND COUNT, LIST, DOCS [name ...], INFO [name ...]."
            ));
        }
    }
}

fn inform(spec: &Spec, reply: &mut Reply<'_>) {
    reply.array(6);
    reply.bulk(spec.name.to_ascii_lowercase().as_bytes());
    reply.integer(spec.arity);
    reply.array(spec.flags.len());
    spec.flags.iter().for_each(|flag| reply.simple(flag));
    let takes_many = matches!(spec.name, "DEL" | "EXISTS");
    reply.integer(spec.key);
    reply.integer(if takes_many { -1 } else { spec.key });
    reply.integer(i64::from(spec.key > 0));
}

fn document(spec: &Spec, reply: &mut Reply<'_>) {
    reply.bulk(spec.name.to_ascii_lowercase().as_bytes());
    reply.map(4);
    let syntax = format!("{} {}", spec.name, spec.syntax);
    let group = if spec.key > 0 { "generic" } else { "connection" };
    for (name, value) in
        [("summary", spec.summary), ("since", "0.1.0"), ("group", group), ("syntax", syntax.trim_end())]
    {
        reply.bulk(name.as_bytes());
        reply.bulk(value.as_bytes());
    }
}

/// `INFO [section ...]`: the same whatever the sections.
pub(super) fn info(_: &Request<'_>, session: &Session, reply: &mut Reply<'_>) {
    reply.text(&format!(
        "# Server\r\nredis_version:{REDIS_VERSION}\r\nredis_mode:standalone\r\ntollgate_version:{}\r\n\
         process_id:{}\r\n\r\n# Clients\r\nclient_id:{}\r\n\r\n# Persistence\r\nloading:0\r\n\r\n\
         # Replication\r\nrole:master\r\n\r\n# Cluster\r\ncluster_enabled:0\r\n",
        env!("CARGO_PKG_VERSION"),
        std::process::id(),
        session.id,
    ));
}
