//! Files mapped into a process, and symbols for addresses in them. Read on demand and cached.
use crate::elf::Elf;
use crate::maps::{FileId, Mapping, Maps};
use framehop::Module;
use std::collections::HashMap;
use std::rc::Rc;
use std::sync::Arc;

pub struct Images {
    pid: u32,
    maps: Maps,
    /// By file, so that a look after a dlopen reads the new file only.
    files: HashMap<FileId, Option<Rc<Elf>>>,
}

/// Symbol of a code address.
pub struct Place {
    pub path: String,
    pub function: Option<String>,
    pub offset: u64,
}

impl Images {
    pub fn new(pid: u32, maps: Maps) -> Self {
        Self { pid, maps, files: HashMap::new() }
    }

    /// Replaces the mappings. Returns whether the mapped code has changed.
    pub fn renew(&mut self, maps: Maps) -> bool {
        let before = std::mem::replace(&mut self.maps, maps);
        !before.code().eq(self.maps.code())
    }

    /// Returns the number of files read so far.
    pub fn known(&self) -> usize {
        self.files.len()
    }

    pub fn maps(&self) -> &Maps {
        &self.maps
    }

    pub fn is_code(&self, address: u64) -> bool {
        self.maps.find(address).is_some_and(|mapping| mapping.executable)
    }

    pub fn elf(&mut self, mapping: &Mapping) -> Option<Rc<Elf>> {
        let pid = self.pid;
        let usable = mapping.is_file() && !mapping.deleted;
        usable
            .then(|| self.files.entry(mapping.file).or_insert_with(|| Elf::open(pid, mapping).map(Rc::new)).clone())?
    }

    /// Finds the file and function of a code address. `lookup` lies inside the instruction, not behind it.
    pub fn place(&mut self, lookup: u64) -> Place {
        let Some(mapping) = self.maps.find(lookup).cloned() else {
            return Place { path: String::new(), function: None, offset: 0 };
        };
        let elf = self.elf(&mapping);
        let found = elf.and_then(|elf| elf.function(lookup.wrapping_sub(elf.bias(&mapping)?)));
        let (function, offset) = found.map_or((None, 0), |(function, offset)| (Some(function), offset));
        Place { path: mapping.path, function, offset }
    }

    /// Returns the unwind tables of the file that is mapped at an address.
    pub fn module(&mut self, address: u64) -> Option<Module<Arc<[u8]>>> {
        let mapping = self.maps.find(address)?.clone();
        let elf = self.elf(&mapping)?;
        let bias = elf.bias(&mapping)?;
        elf.module(mapping.start..mapping.end, bias)
    }

    /// Returns the addresses in memory of symbols that a file exports.
    pub fn named(&mut self, code: &Mapping, names: &[&str]) -> Vec<Option<u64>> {
        let none = vec![None; names.len()];
        let Some(elf) = self.elf(code) else { return none };
        let Some(bias) = elf.bias(code) else { return none };
        elf.named(names).into_iter().map(|found| Some(found?.wrapping_add(bias))).collect()
    }
}
