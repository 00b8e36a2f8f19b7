//! Many short texts one after the other, so that those of thousands of routes lie close together.

#[derive(Default)]
pub(super) struct Texts {
    all: String,
}

/// Where one of the texts is.
#[derive(Clone, Copy, Default)]
pub(super) struct TextAt {
    begin: u32,
    end: u32,
}

impl Texts {
    pub(super) fn add(&mut self, text: &str) -> TextAt {
        let begin = self.all.len() as u32;
        self.all.push_str(text);
        TextAt { begin, end: self.all.len() as u32 }
    }

    pub(super) fn get(&self, at: TextAt) -> &str {
        &self.all[at.begin as usize..at.end as usize]
    }
}
