/** Main module of a task process. */
import { leaveSignalsToAgent } from '../common/signals.js';
import { nativeCore } from '../native/adapter.js';
import { serveTask } from './serve-task.js';

leaveSignalsToAgent();
serveTask(nativeCore);
