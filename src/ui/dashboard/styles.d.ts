// Stylesheets are bundled beside the modules that import them.
declare module "*.css";
