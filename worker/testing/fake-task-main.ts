/** Task process without the native core. */
import { serveTask } from '../tasks/serve-task.js';
import { fakeCore } from './fake-core.js';

serveTask(fakeCore());
