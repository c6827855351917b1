/// The scenarios that ship, by name.
pub const SHIPPED: [(&str, &str); 6] = [
    ("outage", include_str!("../../../scenarios/outage.yaml")),
    ("throttle", include_str!("../../../scenarios/throttle.yaml")),
    ("flapping", include_str!("../../../scenarios/flapping.yaml")),
    ("brown-out", include_str!("../../../scenarios/brown-out.yaml")),
    ("revoked", include_str!("../../../scenarios/revoked.yaml")),
    ("night", include_str!("../../../scenarios/night.yaml")),
];

/// The text of a scenario that ships.
pub fn shipped(name: &str) -> Option<&'static str> {
    SHIPPED.iter().find(|(own, _)| *own == name).map(|(_, text)| *text)
}
