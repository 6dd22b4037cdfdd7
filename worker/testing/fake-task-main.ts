/** Task process without the native core. */
import { serveTask } from '../task-process/serve-task.js';
import { fakeCore } from './fake-core.js';

serveTask(fakeCore());
