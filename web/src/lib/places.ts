/** Where one can go from everywhere: in the rail, in the tabs of a phone, and by key. */

import {
  House,
  type IconNode,
  Inbox,
  Route as RouteIcon,
  Scale,
  Settings,
  SquareKanban,
  Timer,
  Users,
} from "lucide";
import { account } from "./server/account.svelte";
import { home } from "./server/home.svelte";

export interface Place {
  name: string;
  path: string;
  label: string;
  icon: IconNode;
}

const [HOME, WHY, BOARD, THREADS, DOCKET, GRANTS, PEOPLE, SETTINGS] = [
  ["Home", House],
  ["Why", RouteIcon],
  ["Board", SquareKanban],
  ["Threads", Inbox],
  ["Docket", Scale],
  ["Grants", Timer],
  ["People", Users],
  ["Settings", Settings],
].map(([label, icon]) => {
  const name = String(label).toLowerCase();
  return { name, path: name === "home" ? "/" : `/${name}`, label, icon };
}) as [Place, Place, Place, Place, Place, Place, Place, Place];

/** In the order of the rail; what stands at its foot comes last. */
export const MAIN_PLACES = [HOME, WHY, BOARD, THREADS, DOCKET];
export const SETTINGS_PLACE = SETTINGS;

/** Only admins let people in. */
export function footPlaces(): Place[] {
  return account.current?.roles.includes("admin") ? [GRANTS, PEOPLE] : [GRANTS];
}

/** On a phone: what is for deciding and reading along; the rest is reached from its session or from Home. */
export function tabPlaces(): Place[] {
  return allPlaces().filter((place) => place !== DOCKET && place !== GRANTS);
}

export function allPlaces(): Place[] {
  return [...MAIN_PLACES, ...footPlaces(), SETTINGS];
}

/** How much is new there, and whether it waits for this person. */
export function countAt({ name }: Place): { count: number; waiting: boolean } {
  const { awaiting_my_vote, unread_threads } = home.home.counts;
  if (name === "home") return { count: awaiting_my_vote, waiting: true };
  if (name === "grants") return { count: home.home.standing_grants.length, waiting: false };
  return { count: name === "threads" ? unread_threads : 0, waiting: false };
}
