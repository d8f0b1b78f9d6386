-- What a pod may do, once the table is there: nothing else. The owner of the table runs it:
-- psql -v role=service -f grants.sql
-- Neither DELETE (for `lease purge`, by an operator) nor any right to make or alter tables.
GRANT SELECT, INSERT, UPDATE ON task_leases TO :"role";
