/** The main module of the threads that read what clients send. */
import { serveTasks } from '../../platform/threads/serve-tasks.js';
import { tasks } from './tasks.js';

serveTasks(tasks);
