//! Handshakes as jobs for threads that have let the baton go (`jobs.rs`).
use super::Reactor;
use super::jobs::Job;
use crate::secured::HandshakeOutcome;

impl Reactor {
    /// Whether there is work for a thread that has let the baton go.
    #[inline]
    pub fn has_job(&self) -> bool {
        self.accepting.has_job()
    }

    /// Whether there is some that is likely to be done within so many nanoseconds.
    pub fn has_short_job(&self, most: u64) -> bool {
        self.has_job() && self.accepting.are_jobs_short(most)
    }

    /// For how many nanoseconds it has waited; 0: there is none.
    pub fn job_waited(&self, now: u64) -> u64 {
        self.accepting.job_waited(now)
    }

    pub fn next_job(&mut self) -> Option<Job> {
        self.accepting.next_job(|token| self.connections.check_out_handshake(token))
    }

    /// A job is done. Whether there is something to be read by that, which makes no event.
    pub fn job_is_done(&mut self, job: Job) -> bool {
        self.accepting.job_is_back(job.took);
        if let Some(complaint) = job.take_complaint() {
            let text = format!("Could not use the new certificates; still using the previous ones: {complaint}");
            self.connections.notice(true, || text);
        }
        let Job { token, output, outcome, .. } = job;
        let is_over = matches!(outcome, HandshakeOutcome::Over | HandshakeOutcome::Plain(_));
        if let Some(outcome) = self.connections.check_in_handshake(token, output, outcome) {
            self.act(outcome);
        }
        self.act_on_updates();
        is_over
    }
}
