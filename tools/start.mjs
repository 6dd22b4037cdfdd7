// npm start: the embedded stack in the foreground; see embedded/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('stack/main.js'));
