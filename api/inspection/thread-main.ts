/** Main module of the inspection threads. */
import { serveTasks } from '../../platform/threads/serve-tasks.js';
import { tasks } from './tasks.js';

serveTasks(tasks);
