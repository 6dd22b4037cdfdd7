/** Main module of a rank process: connects the native core to the channel of its agent. */

import { nativeCore } from '../shared/native/adapter.js';
import { leaveSignalsToAgent } from '../shared/signals.js';
import { processChannel } from './channel.js';
import { processJournal, withJournal } from './journal.js';
import { runRank } from './run-rank.js';

// A rank notices the end of its agent by its channel, but not while it is stopped or busy itself.
nativeCore.endWithParent();
leaveSignalsToAgent();
// Only the channel is still open, and closing it would look like the end of the agent.
process.exit(await runRank(withJournal(processChannel(), processJournal), nativeCore));
