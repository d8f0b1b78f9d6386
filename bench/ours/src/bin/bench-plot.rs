//! Draws what standard input describes as an SVG file: `bench-plot FILE < PLOT.json`.

use std::error::Error;
use std::path::PathBuf;

use clap::Parser;
use plotters::prelude::*;
use serde::Deserialize;

/// What it is told.
#[derive(Debug, Parser)]
struct Args {
    /// The file to write.
    file: PathBuf,
}

#[derive(Debug, Deserialize)]
struct Plot {
    title: String,
    x: String,
    panels: Vec<Panel>,
}

/// One above the other, over the same x.
#[derive(Debug, Deserialize)]
struct Panel {
    y: String,
    series: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    name: String,
    points: Vec<(f64, f64)>,
}

const SIZE: (u32, u32) = (900, 640);
const COLOURS: [RGBColor; 4] = [
    RGBColor(31, 119, 180),
    RGBColor(214, 39, 40),
    RGBColor(44, 160, 44),
    RGBColor(148, 103, 189),
];

fn main() -> Result<(), Box<dyn Error>> {
    let args = Args::parse();
    let plot: Plot = serde_json::from_reader(std::io::stdin().lock())?;
    let area = SVGBackend::new(&args.file, SIZE).into_drawing_area();
    area.fill(&WHITE)?;
    let area = area.titled(&plot.title, ("sans-serif", 20))?;
    let last = greatest(plot.panels.iter().flat_map(|panel| &panel.series), |point| point.0);
    for (panel, part) in plot.panels.iter().zip(area.split_evenly((plot.panels.len(), 1))) {
        // A little room above the highest point.
        let top = greatest(&panel.series, |point| point.1) * 1.1;
        let mut chart = ChartBuilder::on(&part)
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(70)
            .build_cartesian_2d(0.0..last, 0.0..top)?;
        chart
            .configure_mesh()
            .x_desc(&plot.x)
            .y_desc(&panel.y)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (series, colour) in panel.series.iter().zip(COLOURS.iter().cycle()) {
            let line = LineSeries::new(series.points.iter().copied(), colour.stroke_width(2));
            chart
                .draw_series(line)?
                .label(&series.name)
                .legend(move |(x, y)| PathElement::new([(x, y), (x + 20, y)], colour.stroke_width(2)));
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.8))
            .border_style(BLACK)
            .draw()?;
    }
    area.present()?;
    Ok(())
}

/// At least something, so that there is a scale.
fn greatest<'a>(series: impl IntoIterator<Item = &'a Series>, value: fn(&(f64, f64)) -> f64) -> f64 {
    let points = series.into_iter().flat_map(|series| &series.points);
    points.map(value).fold(f64::MIN_POSITIVE, f64::max)
}
