/** Main module of a task process. */

import { nativeCore } from '../shared/native/adapter.js';
import { leaveSignalsToAgent } from '../shared/signals.js';
import { serveTask } from './serve-task.js';

leaveSignalsToAgent();
serveTask(nativeCore);
