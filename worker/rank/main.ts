/** The main module of a rank process: the native core on the channel of the agent that forked it. */
import { endWithParent, nativeCore } from '../native/adapter.js';
import { processChannel } from './channel.js';
import { journaled, processJournal } from './journal.js';
import { runRank } from './run-rank.js';

// A rank whose agent was killed notices that by its channel, but not while it is stopped itself.
endWithParent();
// Everything is closed by now but the channel, and closing that would look like the death of the agent.
process.exit(await runRank(journaled(processChannel(), processJournal), nativeCore));
