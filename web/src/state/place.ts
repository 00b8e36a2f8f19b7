/** Which page is shown: the address, and how to go elsewhere. The server knows the same paths. */
import { signal } from "@preact/signals";

export interface Place {
    path: string;
    query: URLSearchParams;
}

export const place = signal<Place>(here());
window.addEventListener("popstate", () => (place.value = here()));

function here(): Place {
    return { path: location.pathname.replace(/(.)\/$/, "$1"), query: new URLSearchParams(location.search) };
}

/** Whether there is work that leaving would lose is for the page to say; drafts outlive it. */
export function go(address: string, how: "push" | "replace" = "push"): void {
    if (how === "push") history.pushState(null, "", address);
    else history.replaceState(null, "", address);
    const before = place.value.path;
    place.value = here();
    if (place.value.path !== before) {
        window.scrollTo(0, 0);
        // Whoever hears the page instead of seeing it begins with its heading.
        requestAnimationFrame(() =>
            document.querySelector<HTMLElement>("main h1")?.focus({ preventScroll: true }),
        );
    }
}

/** For links: a plain click stays in this page, anything else is the browser's. */
export function follow(event: MouseEvent): void {
    const link = event.currentTarget as HTMLAnchorElement;
    if (event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    go(link.getAttribute("href") ?? "/");
}
