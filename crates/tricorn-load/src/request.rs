//! Everything that a run can send, and where it goes.
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use crate::address::Address;
use crate::http2;
use crate::mix;
use crate::plan::{self, Arrivals, Model, Plan};
use crate::prepared::{Line, Prepared, Template};
use crate::tls::{Tls, try_out};
use crate::wire::Origin;

/// Everything that can be sent, and in which shares.
pub struct Requests {
    pub origins: Vec<Origin>,
    pub prepared: Vec<Prepared>,
    /// The requests in turn.
    pub cycle: Vec<u32>,
    /// For each origin its requests in turn.
    pub cycles: Vec<Vec<u32>>,
    /// The origins in turn, for clients that stay with one.
    pub homes: Vec<u32>,
    /// Of a replay: nanoseconds from the start, and the request.
    pub replay: Vec<(u64, u32)>,
    template: Template,
    without_body: Template,
}

/// The requests that redirects asked for, each made once.
#[derive(Default)]
pub struct Redirects(HashMap<(u32, u16, String), Option<u32>>);

impl Redirects {
    /// The request that an answer asks for instead. None: the answer stands.
    pub fn follow(
        &mut self,
        requests: &Requests,
        prepared: &mut Vec<Prepared>,
        request: u32,
        status: u16,
        location: Option<String>,
    ) -> Option<u32> {
        *self.0.entry((request, status, location?)).or_insert_with_key(|(_, _, location)| {
            let next = requests.redirected(&prepared[request as usize], status, location)?;
            prepared.push(next);
            Some(prepared.len() as u32 - 1)
        })
    }
}

impl Requests {
    /// # Errors
    /// A sentence: no server answers at an address, or something cannot be part of a request.
    pub fn new(plan: &Plan) -> Result<Requests, String> {
        let mut requests = Requests {
            origins: Vec::new(),
            prepared: Vec::new(),
            cycle: Vec::new(),
            cycles: Vec::new(),
            homes: Vec::new(),
            replay: Vec::new(),
            template: Template::new(plan, plan.request.body.clone().into())?,
            without_body: Template::new(plan, Arc::default())?,
        };
        requests.add_targets(plan)?;
        if let Model::Open(open) = &plan.model
            && let Arrivals::Replay { entries } = &open.arrivals
        {
            requests.add_replay(entries)?;
        }
        Ok(requests)
    }

    fn add_targets(&mut self, plan: &Plan) -> Result<(), String> {
        let mut weights: Vec<f64> = Vec::new();
        let mut known = Vec::new();
        for target in &plan.targets {
            let origin = match known.iter().position(|known| *known == (&target.address, &target.server_name)) {
                Some(origin) => origin,
                None => {
                    self.origins.push(find(target, plan)?);
                    known.push((&target.address, &target.server_name));
                    weights.push(0.0);
                    known.len() - 1
                }
            };
            weights[origin] += target.weight;
            let line =
                Line { method: plan.request.method.clone(), host: target.host.clone(), path: target.path.clone() };
            self.prepared.push(self.template.prepare(origin as u32, line, self.scheme(origin as u32))?);
        }
        self.cycle = mix::cycle(&plan.targets.iter().map(|target| target.weight).collect::<Vec<_>>());
        let of_origin = |origin: usize| {
            let is_here = |request: &u32| self.prepared[*request as usize].origin as usize == origin;
            self.cycle.iter().copied().filter(is_here).collect()
        };
        self.cycles = (0..self.origins.len()).map(of_origin).collect();
        self.homes = mix::cycle(&weights);
        Ok(())
    }

    fn add_replay(&mut self, entries: &[(f64, String, String)]) -> Result<(), String> {
        let Some(host) = self.prepared.first().map(|first| first.line.host.clone()) else { return Ok(()) };
        let mut known: HashMap<(&str, &str), u32> = HashMap::new();
        for (offset, method, path) in entries {
            let request = match known.get(&(method.as_str(), path.as_str())) {
                Some(request) => *request,
                None => {
                    let line = Line { method: method.clone(), host: host.clone(), path: path.clone() };
                    let has_body = matches!(method.as_str(), "POST" | "PUT" | "PATCH");
                    let template = if has_body { &self.template } else { &self.without_body };
                    self.prepared.push(template.prepare(0, line, self.scheme(0))?);
                    let request = self.prepared.len() as u32 - 1;
                    known.insert((method, path), request);
                    request
                }
            };
            self.replay.push(((offset * 1e9) as u64, request));
        }
        Ok(())
    }

    /// The request that a redirect asks for (RFC 9110 section 15.4). None where it leads to another host.
    pub fn redirected(&self, from: &Prepared, status: u16, location: &str) -> Option<Prepared> {
        let Line { method, host, path } = &*from.line;
        let scheme = self.scheme(from.origin);
        let path = resolve((scheme, host), path, location)?;
        let becomes_get = status == 303 || (matches!(status, 301 | 302) && method == "POST");
        let method = if becomes_get && method != "HEAD" { "GET" } else { method };
        let template = if becomes_get { &self.without_body } else { &self.template };
        template.prepare(from.origin, Line { method: method.into(), host: host.clone(), path }, scheme).ok()
    }

    fn scheme(&self, origin: u32) -> &'static str {
        if self.origins[origin as usize].tls.is_some() { "https" } else { "http" }
    }
}

/// Where a server answers, which is tried out.
pub fn find(target: &plan::Target, plan: &Plan) -> Result<Origin, String> {
    let (address, socket) = Address::find(&target.address, plan.connection.remote)?;
    let timeout = plan.connection.timeout;
    let patience = if timeout > 0.0 { PATIENCE.min(Duration::from_secs_f64(timeout)) } else { PATIENCE };
    let tls = match &target.server_name {
        None => {
            if plan.http2.is_some() {
                http2::try_out(&socket, &format!("http://{}", target.host), patience)?;
            }
            None
        }
        Some(name) => {
            let tls = Tls::new(&plan.tls, name, plan.connections(), plan.http2.is_some())?;
            try_out(&tls, &socket, &format!("https://{}", target.host), patience)?;
            Some(tls)
        }
    };
    Ok(Origin { address, tls })
}

/// The target that `location` names, seen from `path` (RFC 3986 section 5.2, without dot segments).
fn resolve((scheme, host): (&str, &str), path: &str, location: &str) -> Option<String> {
    let location = location.split('#').next().unwrap_or_default();
    let without_query = path.split('?').next().unwrap_or_default();
    let rest = match location.split_once("://") {
        Some((named, rest)) if named == scheme => rest,
        Some(_) => return None,
        None => match location.strip_prefix("//") {
            Some(rest) => rest,
            None if location.starts_with('/') => return Some(location.into()),
            None if location.starts_with('?') => return Some(format!("{without_query}{location}")),
            None => {
                let folder = without_query.rfind('/').map_or("/", |at| &without_query[..=at]);
                return Some(format!("{folder}{location}"));
            }
        },
    };
    let (named, target) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let slash = if target.starts_with('/') { "" } else { "/" };
    named.eq_ignore_ascii_case(host).then(|| format!("{slash}{target}"))
}

/// What a thread gets of so many, when all get as equal shares as can be.
pub fn share(of: usize, thread: usize, threads: usize) -> usize {
    of / threads + usize::from(thread < of % threads)
}

/// For the exchange that tries a server out.
const PATIENCE: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_a_redirect_leads() {
        for (location, target) in [
            ("/b", Some("/b")),
            ("/b#part", Some("/b")),
            ("c?x=1", Some("/a/c?x=1")),
            ("?x=1", Some("/a/b?x=1")),
            ("http://Here:80/b", Some("/b")),
            ("http://here:80", Some("/")),
            ("//here:80/b", Some("/b")),
            ("http://there/b", None),
            ("https://here:80/b", None),
        ] {
            assert_eq!(resolve(("http", "here:80"), "/a/b?q", location).as_deref(), target, "{location}");
        }
        assert_eq!(resolve(("https", "here"), "/", "https://here/b").as_deref(), Some("/b"));
        assert_eq!(resolve(("https", "here"), "/", "http://here/b"), None);
    }
}
