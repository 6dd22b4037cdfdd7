/** A task process as it is, on a machine with emulated devices. */
import './addon.js';
import '../../../worker/tasks/main.js';
