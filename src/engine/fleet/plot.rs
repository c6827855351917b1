use super::measure::Measured;

const WIDTH: f64 = 960.0;
const PANEL: f64 = 120.0;
const LEFT: f64 = 60.0;
const GAP: f64 = 46.0;

/// Draws runs below each other as an SVG: calls a second that worked and that failed, turns recovered, and
/// when the lane was closed.
pub fn plot(runs: &[Measured]) -> String {
    let height = GAP + runs.len() as f64 * (PANEL + GAP);
    let end = runs.iter().flat_map(|run| &run.turns).map(|turn| turn.ended_at.as_secs_f64()).fold(1.0, f64::max);
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" font-size=\"11\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n"
    );
    let most = runs.iter().map(|run| Rates::of(run, end).most()).fold(1.0, f64::max);
    for (row, run) in runs.iter().enumerate() {
        panel(&mut svg, run, end, most, GAP + row as f64 * (PANEL + GAP));
    }
    svg + "</svg>\n"
}

/// Columns of a panel.
const COLUMNS: usize = 300;

struct Rates {
    worked: Vec<f64>,
    failed: Vec<f64>,
    recovered: Vec<f64>,
}

impl Rates {
    fn of(run: &Measured, end: f64) -> Self {
        let column = end / COLUMNS as f64;
        let mut rates = Self { worked: vec![0.0; COLUMNS], failed: vec![0.0; COLUMNS], recovered: vec![0.0; COLUMNS] };
        let place = |at: f64| ((at / column) as usize).min(COLUMNS - 1);
        for call in &run.calls {
            let kind = if call.worked { &mut rates.worked } else { &mut rates.failed };
            kind[place(call.at.as_secs_f64())] += 1.0 / column;
        }
        for turn in run.turns.iter().filter(|turn| turn.worked && turn.failed_at.is_some()) {
            rates.recovered[place(turn.ended_at.as_secs_f64())] += 1.0 / column;
        }
        rates
    }

    fn most(&self) -> f64 {
        self.worked.iter().zip(&self.failed).map(|(worked, failed)| worked + failed).fold(0.0, f64::max)
    }
}

fn panel(svg: &mut String, run: &Measured, end: f64, most: f64, top: f64) {
    let rates = Rates::of(run, end);
    let x = |at: f64| LEFT + at / end * (WIDTH - LEFT - 10.0);
    let y = |rate: f64| top + PANEL - rate / most * PANEL;
    let mut add = |line: String| {
        svg.push_str(&line);
        svg.push('\n');
    };
    add(format!(
        "<text x=\"{LEFT}\" y=\"{}\" font-size=\"13\">{}, {}, seed {}</text>",
        top - 6.0,
        escaped(&run.scenario),
        escaped(&run.policy),
        run.seed
    ));
    let mut closed_at = None;
    for (at, closed) in run.lane.iter().copied().chain([(std::time::Duration::from_secs_f64(end), false)]) {
        match (closed, closed_at) {
            (true, None) => closed_at = Some(at),
            (false, Some(from)) => {
                let (from, to): (std::time::Duration, _) = (from, at);
                let (from, to) = (x(from.as_secs_f64()), x(to.as_secs_f64()));
                add(format!(
                    "<rect x=\"{from:.1}\" y=\"{top}\" width=\"{:.1}\" height=\"{PANEL}\" fill=\"#eee\"/>",
                    (to - from).max(0.5)
                ));
                closed_at = None;
            }
            _ => {}
        }
    }
    let column = end / COLUMNS as f64;
    let area = |values: &dyn Fn(usize) -> f64| {
        let points: String =
            (0..COLUMNS).map(|at| format!("{:.1},{:.1} ", x((at as f64 + 0.5) * column), y(values(at)))).collect();
        format!("{:.1},{:.1} {points}{:.1},{:.1}", x(0.0), y(0.0), x(end), y(0.0))
    };
    add(format!("<polygon points=\"{}\" fill=\"#e4572e\"/>", area(&|at| rates.worked[at] + rates.failed[at])));
    add(format!("<polygon points=\"{}\" fill=\"#4c9f70\"/>", area(&|at| rates.worked[at])));
    let line: String =
        (0..COLUMNS).map(|at| format!("{:.1},{:.1} ", x((at as f64 + 0.5) * column), y(rates.recovered[at]))).collect();
    add(format!("<polyline points=\"{line}\" fill=\"none\" stroke=\"#1b3a6b\"/>"));
    add(format!("<line x1=\"{LEFT}\" y1=\"{0}\" x2=\"{1}\" y2=\"{0}\" stroke=\"#444\"/>", top + PANEL, WIDTH - 10.0));
    add(format!("<text x=\"4\" y=\"{:.1}\">{most:.0}/s</text>", top + 10.0));
    for tick in 0..=6 {
        let at = end * f64::from(tick) / 6.0;
        add(format!(
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{:.0} min</text>",
            x(at),
            top + PANEL + 13.0,
            at / 60.0
        ));
    }
    let legend = "<tspan fill=\"#4c9f70\">calls that worked</tspan> · <tspan fill=\"#e4572e\">calls that failed</tspan> · \
                  <tspan fill=\"#1b3a6b\">turns recovered</tspan> · <tspan fill=\"#888\">lane closed (grey)</tspan>";
    add(format!("<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{legend}</text>", WIDTH - 10.0, top - 6.0));
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
