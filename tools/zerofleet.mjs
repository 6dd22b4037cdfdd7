#!/usr/bin/env node
// The zerofleet command from a checkout; see clients/cli/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

await runMain(() => launch('dist/clients/cli/main.js'));
