//! Puts the console's files into the program: those of `web/dist`, where they were built, or one page that says how to.
//!
//! What is written is Rust: one list, in which a file is named by the path that a browser asks for. Nothing is read from a
//! disk later.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs, io,
    path::{Path, PathBuf},
};

/// Shown where the console was not built. No style: it is allowed none of its own.
const NOTE: &str = "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>Tollgate</title></head>\n\
    <body><h1>Tollgate</h1>\n<p>This tollgate was built without its console. <code>make web</code> builds the console, \
    and whatever builds tollgate after that puts it in.</p>\n<p>The API under <code>/v1</code>, \
    <code>/metrics</code> and <code>/readyz</code> work all the same, and so does <code>tollgate top</code>.</p>\n\
    </body></html>\n";

fn main() -> Result<(), Box<dyn Error>> {
    let dist = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../web/dist");
    println!("cargo::rerun-if-changed=build.rs");
    // It is there also where nothing was built: a path that is not would have everything built anew every time.
    if dist.is_dir() {
        println!("cargo::rerun-if-changed={}", dist.display());
    }
    let mut files = Vec::new();
    gather(&dist, "", &mut files)?;
    let out = PathBuf::from(env::var("OUT_DIR")?);
    if !files.iter().any(|(path, _)| path == "/index.html") {
        let note = out.join("note.html");
        fs::write(&note, NOTE)?;
        files = vec![("/index.html".to_owned(), note)];
    }
    files.sort();
    fs::write(out.join("files.rs"), list(&files)?)?;
    Ok(())
}

/// Every file below a folder, with the path that it is asked for.
fn gather(folder: &Path, path: &str, files: &mut Vec<(String, PathBuf)>) -> io::Result<()> {
    let Ok(entries) = fs::read_dir(folder) else { return Ok(()) };
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let Some(name) = name.to_str().filter(|name| !name.starts_with('.')) else { continue };
        let path = format!("{path}/{name}");
        if entry.file_type()?.is_dir() {
            gather(&entry.path(), &path, files)?;
        } else if content_type(name).is_some() {
            files.push((path, entry.path()));
        }
    }
    Ok(())
}

/// What a file is, by its name; a name that says nothing is not served.
fn content_type(name: &str) -> Option<&'static str> {
    Some(match name.rsplit_once('.')?.1 {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "svg" => "image/svg+xml",
        _ => return None,
    })
}

fn list(files: &[(String, PathBuf)]) -> Result<String, Box<dyn Error>> {
    let mut code = "&[\n".to_owned();
    for (path, file) in files {
        let body = fs::read(file)?;
        let kind = content_type(path).unwrap_or_default();
        let tag = format!("\"{:016x}\"", fnv(&body));
        let packed = PathBuf::from(format!("{}.gz", file.display()));
        let gzip =
            if packed.is_file() { format!("Some(include_bytes!({packed:?}))") } else { "None".to_owned() };
        writeln!(
            code,
            "    File {{ path: {path:?}, content_type: {kind:?}, tag: {tag:?}, body: include_bytes!({file:?}), gzip: {gzip} }},",
        )?;
    }
    code.push_str("]\n");
    Ok(code)
}

/// Tells contents apart (FNV-1a): for the `ETag` of files that are ours, so that nothing more is needed.
fn fnv(bytes: &[u8]) -> u64 {
    bytes
        .iter()
        .fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}
