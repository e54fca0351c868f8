//! Whom to reach without a proxy.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::endpoint::Endpoint;

/// The hosts that `NO_PROXY` names, and those that no proxy can reach for us.
#[derive(Debug, Clone, Default)]
pub(super) struct NoProxy {
    rules: Vec<Rule>,
}

/// One entry of `NO_PROXY`.
#[derive(Debug, Clone, PartialEq)]
enum Rule {
    All,
    /// A host with everything below it.
    Name {
        name: String,
        port: Option<u16>,
    },
    /// The addresses whose first `bits` are those of `net`.
    Net {
        net: IpAddr,
        bits: u32,
        port: Option<u16>,
    },
}

impl NoProxy {
    /// Reads a list, parted by commas or blanks: `*`, `host`, `.suffix`, `*.suffix`, `10.0.0.0/8`, `[::1]`, each also with
    /// `:port`. A host stands for everything below it, too. What cannot be read names a host that nobody has.
    pub(super) fn read(text: &str) -> Self {
        let entries = text.split([',', ' ', '\t']).map(str::trim);
        let rules = entries.filter(|entry| !entry.is_empty()).map(Rule::read);
        Self {
            rules: rules.collect(),
        }
    }

    /// Whether `endpoint` is to be reached without a proxy.
    pub(super) fn covers(&self, endpoint: &Endpoint) -> bool {
        let host = endpoint.host.trim_end_matches('.').to_ascii_lowercase();
        is_near(&host)
            || self
                .rules
                .iter()
                .any(|rule| rule.covers(&host, endpoint.port))
    }
}

impl Rule {
    fn read(entry: &str) -> Self {
        let entry = entry.to_ascii_lowercase();
        if entry == "*" {
            return Self::All;
        }
        let (host, port) = split_port(&entry);
        if let Some((net, bits)) = host.split_once('/')
            && let (Ok(net), Ok(bits)) = (net.parse::<IpAddr>(), bits.parse::<u32>())
        {
            return Self::Net { net, bits, port };
        }
        if let Ok(net) = host.parse::<IpAddr>() {
            let bits = 128;
            return Self::Net { net, bits, port };
        }
        let name = host.trim_start_matches('*').trim_matches('.').to_owned();
        Self::Name { name, port }
    }

    fn covers(&self, host: &str, at: u16) -> bool {
        match self {
            Self::All => true,
            Self::Name { name, port } => {
                let below = host.strip_suffix(name.as_str());
                let is_it = below.is_some_and(|rest| rest.is_empty() || rest.ends_with('.'));
                !name.is_empty() && is_it && port.is_none_or(|port| port == at)
            }
            Self::Net { net, bits, port } => {
                let address = host.parse::<IpAddr>().ok();
                address.is_some_and(|address| is_within(address, *net, *bits))
                    && port.is_none_or(|port| port == at)
            }
        }
    }
}

/// `host`, `host:port`, `[v6]`, `[v6]:port`, a bare IPv6 address.
fn split_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((host, rest)) = entry
        .strip_prefix('[')
        .and_then(|rest| rest.split_once(']'))
    {
        let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
        return (host, port);
    }
    match entry.split_once(':') {
        Some((host, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (host, Some(port)),
            Err(_no_port) => (entry, None),
        },
        _ => (entry, None),
    }
}

/// Whether the first `bits` of both are the same.
fn is_within(address: IpAddr, net: IpAddr, bits: u32) -> bool {
    match (address, net) {
        (IpAddr::V4(address), IpAddr::V4(net)) => {
            let mask = u32::MAX
                .checked_shl(32_u32.saturating_sub(bits))
                .unwrap_or(0);
            u32::from(address) & mask == u32::from(net) & mask
        }
        (IpAddr::V6(address), IpAddr::V6(net)) => {
            let mask = u128::MAX
                .checked_shl(128_u32.saturating_sub(bits))
                .unwrap_or(0);
            u128::from(address) & mask == u128::from(net) & mask
        }
        _ => false,
    }
}

/// This machine and what hangs on its own link, such as the metadata services of clouds, which give credentials: a proxy
/// would ask its own, and learn ours.
fn is_near(host: &str) -> bool {
    if host == "localhost" || host.ends_with(".localhost") {
        return true;
    }
    let Ok(address) = host.parse::<IpAddr>() else {
        return false;
    };
    let link_v4 = IpAddr::V4(Ipv4Addr::new(169, 254, 0, 0));
    let link_v6 = IpAddr::V6(Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 0));
    // Where EC2 and EKS have their services on IPv6.
    let ec2_v6 = IpAddr::V6(Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0));
    address.is_loopback()
        || is_within(address, link_v4, 16)
        || is_within(address, link_v6, 10)
        || is_within(address, ec2_v6, 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn covers(list: &str, authority: &str) -> bool {
        let url = format!("http://{authority}");
        let endpoint = Endpoint::split(&url).unwrap().0;
        NoProxy::read(list).covers(&endpoint)
    }

    #[test]
    fn lists_are_read_as_curl_and_the_aws_tools_do() {
        for (list, authority, expected) in [
            ("", "h", false),
            ("*", "h", true),
            ("h", "h", true),
            ("H.", "h", true),
            ("h", "H.", true),
            ("h", "a.h", true),
            (".h", "a.h", true),
            (".h", "h", true),
            ("*.h", "b.a.h", true),
            ("h", "ah", false),
            ("a.h", "h", false),
            ("x, y\th", "h", true),
            (",,", "h", false),
            (".", "h", false),
            ("*.", "h", false),
            ("h:80", "h", true),
            ("h:81", "h", false),
            ("h:9000", "a.h:9000", true),
            ("h:x", "h", false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/8", "11.1.2.3", false),
            ("10.0.0.0/8", "10.example", false),
            ("10.1.2.3", "10.1.2.3:9000", true),
            ("10.1.2.3:9000", "10.1.2.3", false),
            ("10.1.2.3/32", "10.1.2.4", false),
            ("0.0.0.0/0", "10.1.2.3", true),
            ("0.0.0.0/0", "[2001:db8::1]", false),
            ("10.0.0.0/99", "10.0.0.0", true),
            ("2001:db8::/32", "[2001:db8:1::5]", true),
            ("[2001:db8::1]", "[2001:db8::1]:9", true),
            ("[2001:db8::1]:9", "[2001:db8::1]:8", false),
            ("::/0", "[2001:db8::1]", true),
            ("2001:db8::1", "[2001:db8::2]", false),
        ] {
            assert_eq!(covers(list, authority), expected, "{list:?} {authority}");
        }
    }

    #[test]
    fn this_machine_and_its_link_are_never_asked_through_a_proxy() {
        for near in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.170.23",
            "[fd00:ec2::254]",
            "[fd00:ec2::23]",
            "[fe80::1]",
            "127.0.0.1:9000",
            "127.8.9.1",
            "[::1]",
            "localhost:4566",
            "s3.localhost",
        ] {
            assert!(covers("", near), "{near}");
        }
        for far in [
            "10.0.0.1",
            "169.253.0.1",
            "[fd01::1]",
            "localhost.example",
            "128.0.0.1",
        ] {
            assert!(!covers("", far), "{far}");
        }
    }
}
