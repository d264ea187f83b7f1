import { mount } from "svelte";
import "./tokens.css";
import "./base.css";
import App from "./App.svelte";
import { applyPreferences } from "./lib/preferences.svelte";

applyPreferences();
const target = document.getElementById("app");
if (target) mount(App, { target });
