/** What this browser remembers: how somebody likes it. Without storage nothing is remembered, and nothing breaks. */

const PREFIX = "tollgate.";

function over(storage: () => Storage) {
    return {
        get(name: string): string | null {
            try {
                return storage().getItem(PREFIX + name);
            } catch {
                return null;
            }
        },
        set(name: string, value: string | null): void {
            try {
                if (value === null) storage().removeItem(PREFIX + name);
                else storage().setItem(PREFIX + name, value);
            } catch {
                // Private windows may refuse.
            }
        },
    };
}

/** Across visits. */
export const remembered = over(() => localStorage);
/** Until this tab is closed: drafts, which may be somebody's work and are nobody else's. */
export const forThisTab = over(() => sessionStorage);
