/**
 * Settings of the AWS SDK that every process which makes a client of it needs: imported by the modules that make one.
 *
 * On a Node.js that it will drop the SDK prints a warning in each process. `npm start` gives one line of advice for all of them
 * (tools/bootstrap/node-version.mjs), and what a rank prints goes into the log of its job.
 */
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';
