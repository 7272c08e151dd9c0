//! The DRAM model's parameters as text: `latency=64,bandwidth=8,shared=true,row=0,burst=0`.

use tilewright_hw::config::{DramSection, HwConfig};

/// Changes the configuration's DRAM model by `text`: `KEY=VALUE` pairs separated by commas.
///
/// | key | meaning |
/// |---|---|
/// | `latency` | cycles |
/// | `bandwidth` | bytes per cycle, a whole number |
/// | `shared` | `true` if reads and writes share the bandwidth |
/// | `row` | sixteenths of a cycle to open a row |
/// | `burst` | sixteenths of a cycle that each burst takes before its beats |
///
/// # Errors
/// A text that lists every invalid pair.
pub fn apply(text: &str, config: &mut HwConfig) -> Result<(), String> {
    let mut errors = Vec::new();
    let bus_bytes = config.bus_bytes();
    let mut seen = Vec::new();
    for pair in text.split(',') {
        let Some((key, value)) = pair.split_once('=') else {
            let pair = if pair.trim().is_empty() { "an empty part" } else { pair.trim() };
            errors.push(format!("{pair} is not of the form KEY=VALUE"));
            continue;
        };
        let (key, value) = (key.trim(), value.trim());
        if seen.contains(&key) {
            errors.push(format!("{key}={value}: {key} is given twice"));
            continue;
        }
        seen.push(key);
        let dram = &mut config.dram;
        let outcome = match key {
            "latency" => number(value).map(|n| dram.latency = n),
            "row" => number(value).map(|n| dram.row_open_sixteenths = n),
            "burst" => number(value).map(|n| dram.burst_sixteenths = n),
            "bandwidth" => beat_sixteenths(value, bus_bytes).map(|n| dram.beat_sixteenths = n),
            "shared" => value.parse().map(|b| dram.shared = b).map_err(|_| "is not true or false".to_string()),
            _ => Err("is not a parameter; use latency, bandwidth, shared, row or burst".to_string()),
        };
        if let Err(reason) = outcome {
            errors.push(format!("{key}={value}: {reason}"));
        }
    }
    if errors.is_empty() { Ok(()) } else { Err(tilewright_hw::list::first(&errors, "; ")) }
}

/// Formats the parameters for [`apply`], which does not accept a bandwidth that is not a whole number of bytes per
/// cycle.
pub fn text(dram: &DramSection, bus_bytes: u32) -> String {
    let bytes = dram.bytes_per_cycle(bus_bytes);
    let DramSection { latency, shared, row_open_sixteenths, burst_sixteenths, .. } = dram;
    format!("latency={latency},bandwidth={bytes},shared={shared},row={row_open_sixteenths},burst={burst_sixteenths}")
}

fn number(value: &str) -> Result<u32, String> {
    value
        .parse()
        .ok()
        .filter(|n| *n <= DramSection::MOST)
        .ok_or_else(|| format!("is not a whole number up to {}", DramSection::MOST))
}

fn beat_sixteenths(value: &str, bus_bytes: u32) -> Result<u32, String> {
    let bytes: u32 = number(value)?;
    let whole = bus_bytes * DramSection::SIXTEENTHS;
    if bytes == 0 || bytes > bus_bytes || !whole.is_multiple_of(bytes) {
        let possible: Vec<String> =
            (1..=bus_bytes).filter(|b| whole.is_multiple_of(*b)).map(|b| b.to_string()).collect();
        return Err(format!("is not a bandwidth of this bus; use one of {} bytes per cycle", possible.join(", ")));
    }
    Ok(whole / bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_printed_reads_back() {
        let mut config = HwConfig::load("1x16x16").unwrap();
        assert_eq!(text(&config.dram, config.bus_bytes()), "latency=64,bandwidth=8,shared=true,row=0,burst=0");
        apply("latency=7, bandwidth=4,shared=false,row=3,burst=5", &mut config).unwrap();
        assert_eq!(text(&config.dram, config.bus_bytes()), "latency=7,bandwidth=4,shared=false,row=3,burst=5");
        assert_eq!(config.dram.beat_sixteenths, 32);
    }

    #[test]
    fn every_error_is_told() {
        let mut config = HwConfig::load("1x16x16").unwrap();
        assert_eq!(
            apply("latency=x,bandwidth=3,speed=1,row,shared=7", &mut config).unwrap_err(),
            "latency=x: is not a whole number up to 1073741824; \
             bandwidth=3: is not a bandwidth of this bus; use one of 1, 2, 4, 8 bytes per cycle; \
             speed=1: is not a parameter; use latency, bandwidth, shared, row or burst; \
             row is not of the form KEY=VALUE; shared=7: is not true or false"
        );
        assert_eq!(apply("", &mut config).unwrap_err(), "an empty part is not of the form KEY=VALUE");
        assert_eq!(
            apply("row=1,row=1,", &mut config).unwrap_err(),
            "row=1: row is given twice; an empty part is not of the form KEY=VALUE"
        );
    }
}
