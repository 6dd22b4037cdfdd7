/** The autoscaler as a program of its own. */
import { runProgram } from '../platform/process/run-program.js';
import { startAutoscaler } from './start.js';

await runProgram('autoscaler', startAutoscaler);
