//! What is shown, as those see it who look.

mod access;
mod exposition;
mod metrics;
mod pages;
mod serving;
mod site;
mod top;
