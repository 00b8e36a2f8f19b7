//! Reflection: what there is to call, for tools that have no proto files. Both versions are the same on the wire.

use super::messages::{
    FileDescriptors, Named, Reflected, ReflectionError, ReflectionRequest, ReflectionResponse, ServiceList,
    Wanted,
};
use prost::Message;
use prost_types::{DescriptorProto, FileDescriptorProto};
use std::{
    collections::{BTreeSet, HashMap},
    sync::LazyLock,
};

/// The files of `proto/` and those they import, compiled: a `google.protobuf.FileDescriptorSet`. A test holds it to them.
const COMPILED: &[u8] = include_bytes!("../../proto/descriptors.bin");

const NOT_FOUND: i32 = 5;
const UNIMPLEMENTED: i32 = 12;

static FILES: LazyLock<Files> = LazyLock::new(|| Files::read(COMPILED));

#[derive(Default)]
struct Files {
    files: Vec<(FileDescriptorProto, Vec<u8>)>,
    by_name: HashMap<String, usize>,
    by_symbol: HashMap<String, usize>,
    services: Vec<Named>,
}

impl Files {
    fn read(compiled: &[u8]) -> Self {
        let mut read = Self::default();
        // The same shape: files, each encoded, under 1.
        let Ok(set) = FileDescriptors::decode(compiled) else { return read };
        for bytes in set.files {
            let Ok(head) = FileDescriptorProto::decode(&*bytes) else { continue };
            read.add(head, bytes);
        }
        read
    }

    fn add(&mut self, head: FileDescriptorProto, bytes: Vec<u8>) {
        let place = self.files.len();
        let package = head.package();
        let mut symbols = Vec::new();
        head.message_type.iter().for_each(|message| add_symbols(message, package, &mut symbols));
        symbols.extend(head.enum_type.iter().map(|it| format!("{package}.{}", it.name())));
        for service in &head.service {
            let name = format!("{package}.{}", service.name());
            symbols.extend(service.method.iter().map(|method| format!("{name}.{}", method.name())));
            self.services.push(Named { name: name.clone() });
            symbols.push(name);
        }
        self.by_symbol.extend(symbols.into_iter().map(|symbol| (symbol, place)));
        self.by_name.insert(head.name().to_owned(), place);
        self.files.push((head, bytes));
    }

    /// A file, and all that it imports.
    fn with_imports(&self, place: usize) -> Vec<Vec<u8>> {
        let (mut wanted, mut taken) = (vec![place], BTreeSet::new());
        let mut files = Vec::new();
        while let Some(place) = wanted.pop() {
            if taken.insert(place) {
                let (head, bytes) = &self.files[place];
                files.push(bytes.clone());
                wanted.extend(head.dependency.iter().filter_map(|name| self.by_name.get(name)));
            }
        }
        files
    }
}

// Nesting is what our own files have.
fn add_symbols(message: &DescriptorProto, within: &str, symbols: &mut Vec<String>) {
    let name = format!("{within}.{}", message.name());
    message.nested_type.iter().for_each(|message| add_symbols(message, &name, symbols));
    symbols.extend(message.enum_type.iter().map(|it| format!("{name}.{}", it.name())));
    symbols.push(name);
}

/// What is told to one question.
pub(super) fn answer(request: ReflectionRequest) -> ReflectionResponse {
    let files = &*FILES;
    let file = |place: Option<&usize>, what: &str| match place {
        Some(place) => Reflected::Files(FileDescriptors { files: files.with_imports(*place) }),
        None => error(NOT_FOUND, format!("there is no {what}")),
    };
    let reflected = match &request.wanted {
        Some(Wanted::FileByName(name)) => file(files.by_name.get(name), "such file"),
        Some(Wanted::FileWithSymbol(symbol)) => file(files.by_symbol.get(symbol), "such symbol"),
        Some(Wanted::Services(_)) => Reflected::Services(ServiceList { services: files.services.clone() }),
        Some(Wanted::FileWithExtension(_) | Wanted::Extensions(_)) => {
            error(NOT_FOUND, "there are no extensions".to_owned())
        }
        None => error(UNIMPLEMENTED, "this is not known to be asked for".to_owned()),
    };
    ReflectionResponse {
        valid_host: request.host.clone(),
        original_request: Some(request),
        reflected: Some(reflected),
    }
}

const fn error(code: i32, message: String) -> Reflected {
    Reflected::Error(ReflectionError { code, message })
}
