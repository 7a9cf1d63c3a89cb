//! How do times grow? One picture for each program with a size: a panel for each question, a curve for each
//! tool, time on a logarithmic scale. SVG, without fonts of our own.
//!
//! A point is the median time of an answer, on a bar from the least to the most. A cross at the top is a tool
//! that ran out of time or memory there.

use super::record::{Comparison, Row};
use super::{Discipline, Said};
use plotters::coord::Shift;
use plotters::prelude::*;

const PANEL: u32 = 420;
const HEIGHT: u32 = 340;
/// Distinct also for those who see red and green alike.
const COLORS: [RGBColor; 8] = [
    RGBColor(0, 90, 181),
    RGBColor(220, 110, 0),
    RGBColor(0, 140, 110),
    RGBColor(170, 50, 140),
    RGBColor(90, 90, 90),
    RGBColor(190, 30, 45),
    RGBColor(80, 160, 220),
    RGBColor(150, 120, 0),
];

pub fn file_name(stem: &str, program: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    format!("{stem}-{}.svg", program.chars().map(plain).collect::<String>())
}

/// A curve needs two sizes at least.
pub fn is_worthwhile(comparison: &Comparison, program: &str) -> bool {
    let mut sizes: Vec<_> =
        rows(comparison, program).filter(|r| r.is_answered()).filter_map(|r| r.size).collect();
    sizes.dedup();
    sizes.len() > 1
}

fn rows<'a>(comparison: &'a Comparison, program: &'a str) -> impl Iterator<Item = &'a Row> {
    comparison.rows.iter().filter(move |r| r.program == program && r.measured().is_some())
}

/// The picture of one program.
pub fn svg(comparison: &Comparison, program: &str) -> Result<String, String> {
    let questions: Vec<Discipline> =
        Discipline::ALL.into_iter().filter(|q| rows(comparison, program).any(|r| r.question == *q)).collect();
    let mut text = String::new();
    {
        let size = (PANEL * questions.len().max(1) as u32, HEIGHT);
        let area = SVGBackend::with_string(&mut text, size).into_drawing_area();
        draw(comparison, program, &questions, &area).map_err(|e| e.to_string())?;
        area.present().map_err(|e| e.to_string())?;
    }
    Ok(text)
}

type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
type Drawn = Result<(), Box<dyn std::error::Error>>;

fn draw(comparison: &Comparison, program: &str, questions: &[Discipline], area: &Area) -> Drawn {
    area.fill(&WHITE)?;
    let all: Vec<&Row> = rows(comparison, program).filter(|r| r.size.is_some()).collect();
    let sizes = || all.iter().filter_map(|r| r.size);
    let (Some(first), Some(last)) = (sizes().min(), sizes().max()) else { return Ok(()) };
    let walls = || all.iter().filter_map(|r| r.wall());
    let least = walls().map(|w| w.least).fold(f64::INFINITY, f64::min);
    let most = walls().map(|w| w.most).fold(0.0, f64::max);
    // Below is room for the names, above for the crosses.
    let bounds = Bounds { sizes: (first, last), times: (least * 0.12, most * 2.0) };
    let mut names: Vec<&str> = Vec::new();
    for row in &all {
        if !names.contains(&row.contestant.as_str()) {
            names.push(&row.contestant);
        }
    }
    for (panel, question) in area.split_evenly((1, questions.len())).iter().zip(questions) {
        let own: Vec<&Row> = all.iter().copied().filter(|r| r.question == *question).collect();
        panel_of(&own, &names, &format!("{program}: {}", caption(*question)), &bounds, panel)?;
    }
    Ok(())
}

/// A time on the axis: `10 ms`.
fn power(seconds: &f64) -> String {
    let (value, unit) = if *seconds < 0.9 { (seconds * 1000.0, "ms") } else { (*seconds, "s") };
    // Powers of ten come out of logarithms, and not quite even.
    format!("{} {unit}", (value * 1000.0).round() / 1000.0)
}

struct Bounds {
    sizes: (i64, i64),
    times: (f64, f64),
}

fn caption(question: Discipline) -> &'static str {
    match question {
        Discipline::Sc => "check under SC",
        Discipline::Tso => "check under TSO",
        Discipline::Robust => "robustness",
        Discipline::Fences => "fewest fences",
    }
}

fn panel_of(rows: &[&Row], names: &[&str], title: &str, bounds: &Bounds, panel: &Area) -> Drawn {
    let ((first, last), (least, most)) = (bounds.sizes, bounds.times);
    let margin = (last - first) as f64 * 0.05 + 0.1;
    let mut chart = ChartBuilder::on(panel)
        .caption(title, ("sans-serif", 15))
        .margin(10)
        .x_label_area_size(34)
        .y_label_area_size(58)
        .build_cartesian_2d(first as f64 - margin..last as f64 + margin, (least..most).log_scale())?;
    let whole = |x: &f64| if x.fract() == 0.0 { format!("{x:.0}") } else { String::new() };
    chart
        .configure_mesh()
        .light_line_style(TRANSPARENT)
        .bold_line_style(BLACK.mix(0.12))
        .x_labels(((last - first) as usize + 1).clamp(2, 10))
        .x_label_formatter(&whole)
        .y_label_formatter(&power)
        .x_desc(super::family::PARAMETER)
        .y_desc("time")
        .label_style(("sans-serif", 12))
        .draw()?;
    for (k, name) in names.iter().enumerate() {
        let color = COLORS[k % COLORS.len()];
        let own: Vec<&Row> = rows.iter().copied().filter(|r| r.contestant == *name).collect();
        if own.is_empty() {
            continue;
        }
        let answered =
            || own.iter().filter(|r| r.is_answered()).filter_map(|r| Some((r.size? as f64, r.wall()?)));
        chart
            .draw_series(LineSeries::new(answered().map(|(x, w)| (x, w.median)), color.stroke_width(2)))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new([(x, y), (x + 16, y)], color.stroke_width(2)));
        chart.draw_series(answered().map(|(x, w)| Circle::new((x, w.median), 3, color.filled())))?;
        chart.draw_series(
            answered().map(|(x, w)| PathElement::new([(x, w.least), (x, w.most)], color.stroke_width(1))),
        )?;
        let out = own.iter().filter(|r| r.said().as_ref().is_some_and(Said::ran_out));
        let out = out.filter_map(|r| Some((r.size? as f64, most / 1.4)));
        chart.draw_series(out.map(|at| Cross::new(at, 5, color.stroke_width(2))))?;
    }
    chart
        .configure_series_labels()
        .position(SeriesLabelPosition::LowerRight)
        .background_style(WHITE.mix(0.8))
        .label_font(("sans-serif", 12))
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::record::testing::*;
    use super::*;

    #[test]
    fn a_picture_has_every_tool_and_a_cross_where_one_ran_out() {
        let comparison = comparison(vec![
            ran("lamport", 2, "overtake", &[(SAFE, 0.004), (SAFE, 0.005)]),
            ran("lamport", 2, "spin", &[(SAFE, 0.003)]),
            ran("lamport", 3, "overtake", &[(SAFE, 0.4)]),
            ran("lamport", 3, "spin", &[(Said::OutOfTime, 60.0)]),
        ]);
        assert!(is_worthwhile(&comparison, "lamport"));
        let svg = svg(&comparison, "lamport").expect("it can be drawn");
        assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"));
        for word in ["lamport: check under TSO", "overtake", "spin"] {
            assert!(svg.contains(word), "{word} is missing:\n{svg}");
        }
        assert_eq!(svg.matches("<circle").count(), 3);
        assert_eq!(file_name("compare", "a/b c.tso"), "compare-a-b-c-tso.svg");
    }

    #[test]
    fn times_on_the_axis_are_even() {
        assert_eq!(
            [0.0009999999999, 0.1, 1.0, 10.00000001].map(|s| power(&s)),
            ["1 ms", "100 ms", "1 s", "10 s"]
        );
    }

    #[test]
    fn one_size_is_no_curve() {
        let comparison =
            comparison(vec![ran("p", 2, "overtake", &[(SAFE, 1.0)]), ran("p", 2, "spin", &[(SAFE, 1.0)])]);
        assert!(!is_worthwhile(&comparison, "p"));
    }
}
