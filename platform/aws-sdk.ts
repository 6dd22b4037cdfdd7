/**
 * AWS SDK settings of every process that creates a client, imported by the modules that create one.
 *
 * On a Node.js version that it will drop, the SDK prints a warning in each process. `npm start` prints one
 * line of advice for all of them (tools/bootstrap/node-version.mjs), and the output of a rank goes to the log
 * of its job.
 */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
