//! The argument of a call: `MessagePack` values one after the other, which the script reads from left to right.

/// A list that is being written.
#[derive(Debug)]
pub(crate) struct List {
    bytes: Vec<u8>,
}

impl List {
    pub(crate) fn with_capacity(bytes: usize) -> Self {
        Self { bytes: Vec::with_capacity(bytes) }
    }

    pub(crate) fn number(&mut self, number: u64) {
        put_number(&mut self.bytes, number);
    }

    /// A number, or -1 where there is none.
    pub(crate) fn number_or_none(&mut self, number: Option<u64>) {
        match number {
            Some(number) => self.number(number),
            None => {
                self.bytes.push(0xff);
            }
        }
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        put_bytes(&mut self.bytes, bytes);
    }

    /// A list of three numbers.
    pub(crate) fn triple(&mut self, numbers: [u64; 3]) {
        self.bytes.push(0x93);
        for number in numbers {
            put_number(&mut self.bytes, number);
        }
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.bytes
    }
}

/// A whole number in the fewest bytes.
pub(crate) fn put_number(to: &mut Vec<u8>, number: u64) {
    match number {
        0..=0x7f => to.push(number as u8),
        0x80..=0xff => to.extend([0xcc, number as u8]),
        0x100..=0xffff => {
            to.push(0xcd);
            to.extend((number as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            to.push(0xce);
            to.extend((number as u32).to_be_bytes());
        }
        _ => {
            to.push(0xcf);
            to.extend(number.to_be_bytes());
        }
    }
}

/// A double, to the last bit.
pub(crate) fn put_double(to: &mut Vec<u8>, double: f64) {
    to.push(0xcb);
    to.extend(double.to_be_bytes());
}

pub(crate) fn put_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        len @ 0..=31 => to.push(0xa0 | len as u8),
        len @ 32..=0xff => to.extend([0xd9, len as u8]),
        len => {
            to.push(0xdb);
            to.extend((len as u32).to_be_bytes());
        }
    }
    to.extend(bytes);
}
