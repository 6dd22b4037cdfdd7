/** Main module of the threads that compare texts. */
import { serveTasks } from '../../platform/threads/serve-tasks.js';
import { tasks } from './tasks.js';

serveTasks(tasks);
