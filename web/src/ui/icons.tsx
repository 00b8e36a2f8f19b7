/** The few pictures there are, drawn here. All are decoration: words say the same. */
import type { ComponentChildren } from "preact";

function Icon({ children }: { children: ComponentChildren }) {
    return (
        <svg class="icon" viewBox="0 0 20 20" aria-hidden="true" focusable="false">
            {children}
        </svg>
    );
}

export const OverviewIcon = () => (
    <Icon>
        <path d="M2.500 15.500 6.500 9l3.500 3.500 4-7.500 3.500 5" />
    </Icon>
);
export const RulesIcon = () => (
    <Icon>
        <path d="M7.500 5h10M7.500 10h10M7.500 15h10" />
        <path d="M2.500 5h1.500M2.500 10h1.500M2.500 15h1.500" />
    </Icon>
);
export const KeysIcon = () => (
    <Icon>
        <circle cx="6.500" cy="13.500" r="3.500" />
        <path d="m9 11 7.500-7.500M13.500 6.500l2.500 2.500" />
    </Icon>
);
export const PlayIcon = () => (
    <Icon>
        <path d="M2.500 17.500v-5M6.300 17.500v-9M10 17.500v-13M13.700 17.500v-7M17.500 17.500v-3" />
    </Icon>
);
export const NodesIcon = () => (
    <Icon>
        <rect x="3" y="3" width="14" height="5.500" rx="1.200" />
        <rect x="3" y="11.500" width="14" height="5.500" rx="1.200" />
        <path d="M6 5.750h.01M6 14.250h.01" />
    </Icon>
);
export const MoreIcon = () => (
    <Icon>
        <path d="M4 10h.01M10 10h.01M16 10h.01" stroke-width="2.600" />
    </Icon>
);
export const UpIcon = () => (
    <Icon>
        <path d="M10 16V4.500M5 9l5-5 5 5" />
    </Icon>
);
export const DownIcon = () => (
    <Icon>
        <path d="M10 4v11.500M5 11l5 5 5-5" />
    </Icon>
);
export const BackIcon = () => (
    <Icon>
        <path d="M16 10H4.500M9 5l-5 5 5 5" />
    </Icon>
);

/** The toll gate: its arm is down while limits are on, and up while everybody passes. */
export function Gate({ raised }: { raised: boolean }) {
    return (
        <svg
            class={`gate${raised ? " raised" : ""}`}
            viewBox="0 0 34 28"
            aria-hidden="true"
            focusable="false"
        >
            <g class="gate-arm">
                <rect x="6" y="9" width="26" height="5" rx="2.500" class="gate-light" />
                <path d="M13 9h4.500l-2 5H11zM22 9h4.500l-2 5H20z" class="gate-stripe" />
            </g>
            <rect x="4" y="7" width="6" height="18" rx="1.500" class="gate-post" />
            <rect x="2" y="24" width="10" height="3" rx="1" class="gate-post" />
        </svg>
    );
}
