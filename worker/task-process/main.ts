/** Main module of a task process. */
import { nativeCore } from '../native/adapter.js';
import { serveTask } from './serve-task.js';

serveTask(nativeCore);
