/** What this browser remembers of how its person likes the page; nothing of it is secret. */

export type Theme = "system" | "light" | "dark";
export type Density = "compact" | "comfortable";

const KEY = "accord.preferences";

interface Preferences {
  theme: Theme;
  density: Density;
  /** Single letters act as commands. */
  letterKeys: boolean;
  sound: boolean;
}

const DEFAULTS: Preferences = {
  theme: "system",
  density: "compact",
  letterKeys: true,
  sound: false,
};

function stored(): Preferences {
  try {
    const found: unknown = JSON.parse(localStorage.getItem(KEY) ?? "{}");
    return typeof found === "object" && found ? { ...DEFAULTS, ...found } : { ...DEFAULTS };
  } catch {
    return { ...DEFAULTS };
  }
}

export const preferences = $state<Preferences>(stored());

/** Take over what was chosen, also in another tab. */
export function applyPreferences(): void {
  const root = document.documentElement;
  if (preferences.theme === "system") delete root.dataset.theme;
  else root.dataset.theme = preferences.theme;
  root.dataset.density = preferences.density;
}

export function setPreference<K extends keyof Preferences>(key: K, value: Preferences[K]): void {
  preferences[key] = value;
  applyPreferences();
  try {
    localStorage.setItem(KEY, JSON.stringify(preferences));
  } catch {
    // A browser that stores nothing keeps the choice for this visit.
  }
}

if (typeof window !== "undefined") {
  window.addEventListener("storage", (event) => {
    if (event.key !== KEY) return;
    Object.assign(preferences, stored());
    applyPreferences();
  });
}
