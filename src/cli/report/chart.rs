//! Charts as SVG. Each step is a link to its details and says its number when it is pointed at.

use super::html::{Html, number, signed};
use super::step::ReportStep;

/// The drawing area, in units of the picture.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 150.0;

/// Space on the left for the numbers of the axis, and around the drawing.
const LEFT: f64 = 44.0;
const MARGIN: f64 = 10.0;

/// The widest bar.
const MAX_BAR: f64 = 36.0;

/// The scale of a chart.
struct Scale {
    steps: usize,
    low: f64,
    high: f64,
}

impl Scale {
    /// A scale for some values and zero.
    fn new(steps: usize, values: impl Iterator<Item = f64>) -> Self {
        let (low, high) =
            values.fold((0.0_f64, 0.0_f64), |(low, high), value| (low.min(value), high.max(value)));
        Self { steps, low, high: if low == high { 1.0 } else { high } }
    }

    fn slot(&self) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a position on a screen")]
        let steps = self.steps.max(1) as f64;
        (WIDTH - LEFT - MARGIN) / steps
    }

    /// The middle of a step.
    fn x(&self, step: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "a position on a screen")]
        let step = step as f64;
        LEFT + self.slot() * (step + 0.5)
    }

    fn y(&self, value: f64) -> f64 {
        let share = (value - self.low) / (self.high - self.low);
        HEIGHT - MARGIN - share * (HEIGHT - 2.0 * MARGIN)
    }

    /// Opens the picture, with the axis.
    fn open(&self, html: &mut Html) {
        html.raw("<svg viewBox=\"0 0 640 150\" role=\"img\">\n");
        // One of the ends can be zero.
        let ends = [self.low, self.high].into_iter().filter(|end| *end != 0.0);
        for value in ends.chain([0.0]) {
            html.raw("<line class=\"axis\" x1=\"").number(LEFT).raw("\" x2=\"").number(WIDTH - MARGIN);
            html.raw("\" y1=\"").number(self.y(value)).raw("\" y2=\"").number(self.y(value)).raw("\"/>");
            html.raw("<text x=\"").number(LEFT - 6.0).raw("\" y=\"").number(self.y(value) + 4.0);
            html.raw("\">").text(&number(value)).raw("</text>\n");
        }
    }

    /// A line through the known values; it is interrupted where one is unknown.
    fn line(&self, html: &mut Html, class: &'static str, values: &[Option<f64>]) {
        for (first, part) in parts(values) {
            html.raw("<polyline class=\"").raw(class).raw("\" points=\"");
            for (index, value) in part.iter().enumerate() {
                html.number(self.x(first + index)).raw(",").number(self.y(*value)).raw(" ");
            }
            html.raw("\"/>\n");
        }
    }

    /// A dot at a step, with a link.
    fn dot(&self, html: &mut Html, class: &'static str, (step, value): (usize, f64), says: &str) {
        link(html, step);
        html.raw("<circle class=\"").raw(class).raw("\" cx=\"").number(self.x(step)).raw("\" cy=\"");
        html.number(self.y(value))
            .raw("\" r=\"")
            .number((self.slot() / 2.0).clamp(1.0, 4.0))
            .raw("\"><title>");
        html.text(says).raw("</title></circle></a>\n");
    }
}

/// Opens a link to a step.
fn link(html: &mut Html, step: usize) {
    html.raw("<a href=\"#step-").text(&step.to_string()).raw("\">");
}

/// The uninterrupted parts of a series, with the index of their first values.
fn parts(values: &[Option<f64>]) -> Vec<(usize, Vec<f64>)> {
    let mut parts: Vec<(usize, Vec<f64>)> = Vec::new();
    for (index, value) in values.iter().enumerate() {
        match (value, parts.last_mut()) {
            (Some(value), Some((first, part))) if *first + part.len() == index => part.push(*value),
            (Some(value), _) => parts.push((index, vec![*value])),
            (None, _) => {}
        }
    }
    parts
}

/// The reward of each step as bars, and the sum so far as a line.
pub(super) fn rewards(html: &mut Html, steps: &[ReportStep], is_run: bool) {
    let sums: Vec<f64> = steps
        .iter()
        .scan(0.0, |sum, step| {
            *sum += step.reward.unwrap_or_default();
            Some(*sum)
        })
        .collect();
    let shown: &[f64] = if is_run { &sums } else { &[] };
    let scale =
        Scale::new(steps.len(), steps.iter().filter_map(|step| step.reward).chain(shown.iter().copied()));
    html.raw("<figure><figcaption>Reward");
    html.raw(if is_run { " of each step (bars) and sum so far (line)" } else { " of each head" });
    html.raw("</figcaption>\n");
    scale.open(html);
    let width = (scale.slot() * 0.7).min(MAX_BAR);
    for (index, step) in steps.iter().enumerate() {
        let says = format!("{}: {}", step.label, step.reward.map_or_else(|| "no reward".to_owned(), signed));
        let Some(reward) = step.reward.filter(|reward| *reward != 0.0) else {
            let class = if step.reward.is_some() { "zero" } else { "none" };
            scale.dot(html, class, (index, 0.0), &says);
            continue;
        };
        let (top, bottom) = (scale.y(reward.max(0.0)), scale.y(reward.min(0.0)));
        link(html, index);
        html.raw("<rect class=\"").raw(if reward > 0.0 { "plus" } else { "minus" });
        html.raw("\" x=\"")
            .number(scale.x(index) - width / 2.0)
            .raw("\" y=\"")
            .number(top)
            .raw("\" width=\"");
        html.number(width).raw("\" height=\"").number(bottom - top).raw("\"><title>").text(&says);
        html.raw("</title></rect></a>\n");
    }
    let sums: Vec<Option<f64>> = shown.iter().copied().map(Some).collect();
    scale.line(html, "sum", &sums);
    html.raw("</svg></figure>\n");
}

/// The number of diagnostics before and after each step.
pub(super) fn diagnostics(html: &mut Html, steps: &[ReportStep], is_run: bool) {
    let after: Vec<Option<f64>> = steps.iter().map(|step| step.after).collect();
    let before: Vec<Option<f64>> = steps.iter().map(|step| step.before).collect();
    if after.iter().all(Option::is_none) {
        return;
    }
    let scale = Scale::new(steps.len(), after.iter().chain(&before).copied().flatten());
    html.raw("<figure><figcaption>Diagnostics before (dashed) and after</figcaption>\n");
    scale.open(html);
    scale.line(html, "before", &before);
    // Heads have nothing to do with each other.
    if is_run {
        scale.line(html, "after", &after);
    }
    for (index, (step, value)) in steps.iter().zip(&after).enumerate() {
        if let Some(value) = value {
            scale.dot(html, "after", (index, *value), &format!("{}: {}", step.label, number(*value)));
        }
    }
    html.raw("</svg></figure>\n");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_values_interrupt_a_line() {
        let values = [Some(1.0), Some(2.0), None, None, Some(0.0)];
        assert_eq!(parts(&values), [(0, vec![1.0, 2.0]), (4, vec![0.0])]);
    }

    #[test]
    fn everything_is_inside_of_the_picture() {
        for values in [vec![], vec![0.0], vec![-2.0, 5.0], vec![7.0], vec![-1e9, 1e9]] {
            let scale = Scale::new(values.len(), values.iter().copied());
            for (step, value) in values.iter().enumerate() {
                assert!((LEFT..=WIDTH).contains(&scale.x(step)));
                assert!((0.0..=HEIGHT).contains(&scale.y(*value)), "{values:?}");
            }
            assert!((0.0..=HEIGHT).contains(&scale.y(0.0)));
        }
    }
}
