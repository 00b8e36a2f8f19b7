//! Which of the two text forms a scraper gets.

/// A form of the text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// Prometheus' own text form, 0.0.4. What people see with curl.
    Prometheus,
    /// OpenMetrics 1.0.0, for those who ask for it.
    OpenMetrics,
}

impl Format {
    /// What a request's `Accept` asks for: OpenMetrics where it is wanted at least as much as plain text.
    #[must_use]
    pub fn accepted(accept: &str) -> Self {
        let (mut open, mut plain) = (0.0, 0.0);
        for range in accept.split(',') {
            let mut parts = range.split(';').map(str::trim);
            let kind = parts.next().unwrap_or_default().to_ascii_lowercase();
            let quality = parts.find_map(|part| part.strip_prefix("q=")).map_or(Ok(1.0), str::parse);
            // A quality that is no number asks for nothing.
            let quality = quality.unwrap_or(0.0);
            match kind.as_str() {
                "application/openmetrics-text" => open = f64::max(open, quality),
                "text/plain" | "text/*" | "*/*" => plain = f64::max(plain, quality),
                _ => {}
            }
        }
        if open > 0.0 && open >= plain { Self::OpenMetrics } else { Self::Prometheus }
    }

    /// What the answer's `Content-Type` says.
    #[must_use]
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_asks_for_openmetrics_gets_it_and_nobody_else() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,\
                          application/openmetrics-text;version=0.0.1;q=0.4,text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        for (accept, format) in [
            (prometheus, Format::OpenMetrics),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("Application/OpenMetrics-Text; version=1.0.0", Format::OpenMetrics),
            ("", Format::Prometheus),
            ("*/*", Format::Prometheus),
            ("text/html, */*;q=0.8", Format::Prometheus),
            ("application/openmetrics-text;q=0.1, text/plain", Format::Prometheus),
            ("application/openmetrics-text;q=0", Format::Prometheus),
            ("application/openmetrics-text;q=NaN, text/plain;q=much", Format::Prometheus),
        ] {
            assert_eq!(Format::accepted(accept), format, "{accept}");
        }
    }
}
