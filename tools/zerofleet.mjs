#!/usr/bin/env node
// The zerofleet command from a checkout; see cli/main.ts.
import { runMain } from './bootstrap/errors.mjs';
import { launch } from './bootstrap/launch.mjs';

// Of the commands only `up` starts the stack; the others are called again and again, also by shells that complete them.
await runMain(() => launch('cli/main.js', { advise: process.argv[2] === 'up' }));
