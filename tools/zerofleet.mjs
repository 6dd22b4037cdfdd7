#!/usr/bin/env node
// The zerofleet command from a checkout; see cli/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

// Only `up` starts the stack; the other commands must start fast, because users and shell completion call them often.
await runMain(() => launch('cli/main.js', { advise: process.argv[2] === 'up' }));
