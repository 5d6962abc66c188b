//! The two formats in which metrics are told.

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exposition {
    /// <https://prometheus.io/docs/instrumenting/exposition_formats/#text-based-format>
    Text,
    /// <https://prometheus.io/docs/specs/om/open_metrics_spec/>
    OpenMetrics,
}

impl Exposition {
    pub fn content_type(self) -> &'static str {
        match self {
            Exposition::Text => "text/plain; version=0.0.4; charset=utf-8",
            Exposition::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}
