//! What is shown, as those see it who look.

mod access;
mod console;
mod exposition;
mod head;
mod metrics;
mod pages;
mod serving;
mod site;
mod top;
