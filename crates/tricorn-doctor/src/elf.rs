//! ELF files: their place in memory, function names and unwind tables.
//!
//! Files are read, never mapped: a file that is truncated while it is mapped ends its reader (SIGBUS), and this code
//! runs in workers.
use crate::maps::{FileId, Mapping};
use framehop::{ExplicitModuleSectionInfo, Module};
use object::elf::{
    FileHeader64, PF_X, PT_LOAD, SHT_DYNSYM, SHT_NOBITS, SHT_SYMTAB, STT_FUNC, STT_GNU_IFUNC, STT_OBJECT,
    SectionHeader64, SectionType, Sym64,
};
use object::endian::LittleEndian;
use object::read::ReadCache;
use object::read::elf::{FileHeader, ProgramHeader, SectionHeader, Sym};
use std::cell::OnceCell;
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;

const ENDIAN: LittleEndian = LittleEndian;

/// The largest section that is read: a table of symbols larger than that is not told apart from a broken header.
const MOST_BYTES: u64 = 256 << 20;

pub struct Elf {
    path: String,
    /// Of each segment with code: its offset and size in the file, and the address that the file gives it.
    segments: Vec<(u64, u64, u64)>,
    functions: OnceCell<Symbols>,
}

#[derive(Default)]
struct Symbols {
    /// Sorted by address.
    table: Vec<Symbol>,
    names: Vec<u8>,
}

struct Symbol {
    address: u64,
    size: u64,
    name: u32,
}

impl Elf {
    /// Reads the file of a mapping as the process sees it. `None` if it was replaced or cannot be read.
    pub fn open(pid: u32, mapping: &Mapping) -> Option<Self> {
        let inside = format!("/proc/{pid}/root{}", mapping.path);
        let path = [inside, mapping.path.clone()].into_iter().find(|path| is_file(path, mapping.file))?;
        let cache = ReadCache::new(File::open(&path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
        header.endian().ok()?;
        let segments = header.program_headers(ENDIAN, &cache).ok()?.iter();
        let segments = segments
            .filter(|segment| segment.p_type(ENDIAN) == PT_LOAD && segment.p_flags(ENDIAN) & PF_X == PF_X)
            .map(|segment| (segment.p_offset(ENDIAN), segment.p_filesz(ENDIAN), segment.p_vaddr(ENDIAN)))
            .collect();
        Some(Self { path, segments, functions: OnceCell::new() })
    }

    /// Returns the offset from addresses in the file to addresses in memory; `code` is the mapping of the file's code.
    pub fn bias(&self, code: &Mapping) -> Option<u64> {
        let length = code.end - code.start;
        let overlaps = |&&(offset, size, _): &&(u64, u64, u64)| {
            code.offset < offset.saturating_add(size) && offset < code.offset.saturating_add(length)
        };
        let mapping = code;
        let &(offset, _, address) = self.segments.iter().find(overlaps)?;
        Some(mapping.start.wrapping_sub(mapping.offset).wrapping_add(offset).wrapping_sub(address))
    }

    /// Returns the function at an address in the file, and the offset into it. A symbol without a size ends at the next one.
    pub fn function(&self, address: u64) -> Option<(String, u64)> {
        let symbols = self.functions.get_or_init(|| {
            // A file that was not stripped names its static functions, too.
            self.read(SHT_SYMTAB, false).or_else(|| self.read(SHT_DYNSYM, false)).unwrap_or_default()
        });
        let after = symbols.table.partition_point(|symbol| symbol.address <= address);
        let symbol = symbols.table[..after].last()?;
        let into = address - symbol.address;
        let fits = into < symbol.size || (symbol.size == 0 && into < UNSIZED);
        fits.then(|| (demangled(&symbols.name(symbol.name)), into))
    }

    /// The address in the file of what has each name: of the first table that has the first of them. Reads them anew.
    pub fn named(&self, names: &[&str]) -> Vec<Option<u64>> {
        // What is looked for is exported as a rule, and the dynamic table is the shorter one.
        let found =
            [SHT_DYNSYM, SHT_SYMTAB].into_iter().filter_map(|kind| Some(self.read(kind, true)?.addresses(names)));
        let mut found = found.filter(|addresses| addresses.first().is_some_and(Option::is_some));
        found.next().unwrap_or_else(|| vec![None; names.len()])
    }

    /// A table of symbols: of functions, or of objects, too.
    fn read(&self, kind: SectionType, objects: bool) -> Option<Symbols> {
        let cache = ReadCache::new(File::open(&self.path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
        let sections = header.sections(ENDIAN, &cache).ok()?;
        let section = sections.iter().find(|section| section.sh_type(ENDIAN) == kind)?;
        let link = object::SectionIndex(section.sh_link(ENDIAN) as usize);
        let strings = sections.section(link).ok()?;
        if section.sh_size(ENDIAN).max(strings.sh_size(ENDIAN)) > MOST_BYTES {
            return None;
        }
        let entries = section.data_as_array::<Sym64<LittleEndian>, _>(ENDIAN, &cache).ok()?;
        let names = strings.data(ENDIAN, &cache).ok()?.to_vec();
        let mut table: Vec<Symbol> = entries.iter().filter_map(|entry| wanted(entry, objects)).collect();
        table.sort_by_key(|symbol| (symbol.address, symbol.size));
        (!table.is_empty()).then_some(Symbols { table, names })
    }

    /// Returns the unwind tables, relocated to the file's place in memory.
    pub fn module(&self, code: Range<u64>, bias: u64) -> Option<Module<Arc<[u8]>>> {
        let cache = ReadCache::new(File::open(&self.path).ok()?);
        let header = FileHeader64::<LittleEndian>::parse(&cache).ok()?;
        let sections = header.sections(ENDIAN, &cache).ok()?;
        let find = |name: &[u8]| sections.iter().find(|section| sections.section_name(ENDIAN, *section) == Ok(name));
        let place = |name: &[u8]| {
            let (start, size) = find(name).map(|found| (found.sh_addr(ENDIAN), found.sh_size(ENDIAN)))?;
            Some(start..start.saturating_add(size))
        };
        // Of the code, which is the most of a file, nothing is read but where it is.
        let data = |name: &[u8]| {
            let usable = |found: &&SectionHeader64<LittleEndian>| {
                found.sh_type(ENDIAN) != SHT_NOBITS && found.sh_size(ENDIAN) <= MOST_BYTES
            };
            find(name).filter(usable)?.data(ENDIAN, &cache).ok().map(Arc::<[u8]>::from)
        };
        let info = ExplicitModuleSectionInfo {
            base_svma: 0,
            text_svma: place(b".text"),
            got_svma: place(b".got"),
            eh_frame_svma: Some(place(b".eh_frame")?),
            eh_frame_hdr_svma: place(b".eh_frame_hdr"),
            eh_frame: data(b".eh_frame"),
            eh_frame_hdr: data(b".eh_frame_hdr"),
            ..Default::default()
        };
        Some(Module::new(self.path.clone(), code, bias, info))
    }
}

impl Symbols {
    fn addresses(&self, names: &[&str]) -> Vec<Option<u64>> {
        let mut found = vec![None; names.len()];
        for symbol in &self.table {
            let name = self.raw(symbol.name);
            if let Some(place) = names.iter().position(|wanted| wanted.as_bytes() == name) {
                found[place] = Some(symbol.address);
            }
        }
        found
    }

    fn raw(&self, name: u32) -> &[u8] {
        let rest = self.names.get(name as usize..).unwrap_or_default();
        rest.split(|&byte| byte == 0).next().unwrap_or_default()
    }

    fn name(&self, name: u32) -> String {
        String::from_utf8_lossy(self.raw(name)).into_owned()
    }
}

fn wanted(entry: &Sym64<LittleEndian>, objects: bool) -> Option<Symbol> {
    let kind = entry.st_type();
    let fits = kind == STT_FUNC || kind == STT_GNU_IFUNC || (objects && kind == STT_OBJECT);
    let symbol = Symbol { address: entry.st_value(ENDIAN), size: entry.st_size(ENDIAN), name: entry.st_name(ENDIAN) };
    (fits && symbol.address != 0 && symbol.name != 0).then_some(symbol)
}

fn is_file(path: &str, file: FileId) -> bool {
    // The device in maps is not stat's on every file system (overlayfs, btrfs): the inode is.
    std::fs::metadata(path).is_ok_and(|data| data.is_file() && data.ino() == file.inode)
}

/// Names of Rust functions are legible; those of C++ are told as they are.
fn demangled(name: &str) -> String {
    match rustc_demangle::try_demangle(name) {
        Ok(legible) => format!("{legible:#}"),
        Err(_) => name.to_owned(),
    }
}

/// How far hand-written assembly, which tells no size, is believed to reach.
const UNSIZED: u64 = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::maps::Maps;

    /// Bytes that this thread has read.
    fn read() -> u64 {
        let told = std::fs::read_to_string("/proc/thread-self/io").expect("proc(5)");
        let count = told.lines().find_map(|line| line.strip_prefix("rchar: "));
        count.and_then(|count| count.parse().ok()).expect("a number")
    }

    #[test]
    fn unwind_tables_are_read_and_not_the_code_that_they_are_about() {
        let maps = std::fs::read_to_string("/proc/self/maps").expect("proc(5)");
        let here = unwind_tables_are_read_and_not_the_code_that_they_are_about as *const () as u64;
        let maps = Maps::parse(&maps);
        let code = maps.find(here).expect("this function is somewhere");
        let elf = Elf::open(std::process::id(), code).expect("this program");
        let before = read();
        let module = elf.module(code.start..code.end, elf.bias(code).expect("its code"));
        let (count, length) = (read() - before, code.end - code.start);
        assert!(module.is_some());
        assert!(count > 0 && count < length, "{count} bytes were read of a file with {length} bytes of code");
    }
}
