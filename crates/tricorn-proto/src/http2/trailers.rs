//! Trailers of a request (RFC 9113 section 8.1): never merged into its fields.
use super::field_rules::check_field;
use super::violation::Violation;
use crate::http1::HeadPolicy;
use crate::http1::chunked::may_trail;

/// Takes the fields of one section, in order. Beyond the limits nothing is stored, and the stream ends.
pub(super) struct TrailerReader<'a> {
    trailers: &'a mut Vec<(Vec<u8>, Vec<u8>)>,
    policy: &'a HeadPolicy,
    max_list: usize,
    size: usize,
    count: usize,
    violation: Option<Violation>,
}

impl<'a> TrailerReader<'a> {
    pub fn new(
        trailers: &'a mut Vec<(Vec<u8>, Vec<u8>)>,
        policy: &'a HeadPolicy,
        max_list: usize,
    ) -> TrailerReader<'a> {
        trailers.clear();
        TrailerReader { trailers, policy, max_list, size: 0, count: 0, violation: None }
    }

    pub fn take(&mut self, name: &[u8], value: &[u8]) {
        if self.violation.is_none() {
            self.violation = self.add(name, value).err();
        }
    }

    pub fn finish(self) -> Result<(), Violation> {
        self.violation.map_or(Ok(()), Err)
    }

    fn add(&mut self, name: &[u8], value: &[u8]) -> Result<(), Violation> {
        if name.first() == Some(&b':') {
            return Err(Violation::PseudoTrailer);
        }
        check_field(name, value)?;
        self.size += name.len() + value.len() + 32;
        self.count += 1;
        let bounds = self.policy.limits.bounds();
        if self.size > self.max_list || self.count > bounds.fields {
            return Err(Violation::TrailersTooLarge);
        }
        if may_trail(name, self.policy).map_err(|_| Violation::TrailerField)? {
            self.trailers.push((name.to_vec(), value.to_vec()));
        }
        Ok(())
    }
}
