/** A production task process on a machine with emulated devices. */
import './addon.js';
import '../../../worker/tasks/main.js';
